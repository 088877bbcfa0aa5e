// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
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

// ErrParked is in the chain of the error of every use of an ensemble that is
// [Parked].
var ErrParked = errors.New("parked")

// limitError says which limit was reached.
type limitError struct {
	what  string // such as "no connection"
	limit time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s within %s", e.what, e.limit) }

// Is makes the error one that says that a deadline has passed.
func (e *limitError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout makes the error one of the net.Error kind that timed out.
func (e *limitError) Timeout() bool { return true }
