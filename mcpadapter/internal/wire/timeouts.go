// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// EndTimeout bounds how long something may take to end after it was told to, such as a
// call of the SDK whose link was killed. It is far longer than that needs; only an
// embedder's function that ignores its context could use it up.
const EndTimeout = 2 * time.Second

// StallTimeout bounds a write whose context has no deadline, such as the answer to a
// server's request, and each write to a client over a stream.
const StallTimeout = time.Minute

// AnswerTimeout is how long a person or a model may take to answer a question of the
// server, unless the options say otherwise.
const AnswerTimeout = 10 * time.Minute
