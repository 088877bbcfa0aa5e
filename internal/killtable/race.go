// SPDX-License-Identifier: Apache-2.0

//go:build race

package killtable

// raced says that the race detector is built in: each process starts so slowly
// then that a conversation dies in one exchange only, as with -short.
const raced = true
