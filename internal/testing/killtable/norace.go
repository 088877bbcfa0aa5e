// SPDX-License-Identifier: Apache-2.0

//go:build !race

package killtable

// raced says that the race detector is built in.
const raced = false
