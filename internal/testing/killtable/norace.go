// SPDX-License-Identifier: Apache-2.0

//go:build !race

package killtable

// raced reports whether the race detector is enabled.
const raced = false
