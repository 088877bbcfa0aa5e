// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"errors"
	"fmt"
	"time"
)

// ErrClosed is in the chain of every error that says that an [Ensemble] or a
// [Roster] was used after Close. Make a new one.
var ErrClosed = errors.New("closed for good")

// ErrDisconnected is in the chain of the error of whoever waits for a
// connection, or for an answer over one, that Disconnect ends. The next use
// connects again.
var ErrDisconnected = errors.New("disconnected on request")

// limitError says which limit was reached.
type limitError struct {
	what  string // such as "no connection"
	limit time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s within %s", e.what, e.limit) }

// Timeout makes the error one of the net.Error kind that timed out.
func (e *limitError) Timeout() bool { return true }
