// SPDX-License-Identifier: Apache-2.0

//go:build race

package killtable

// raced reports whether the race detector is enabled. Processes then die in only one
// exchange, and only the store in files is tested.
const raced = true
