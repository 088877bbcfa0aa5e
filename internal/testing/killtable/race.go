// SPDX-License-Identifier: Apache-2.0

//go:build race

package killtable

// raced says that the race detector is built in: each process starts so slowly
// then that conversations die in one exchange only, as with -short, and on files.
const raced = true
