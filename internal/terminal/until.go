// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"io"
)

// Until returns a reader of standard input that fails when ctx ends, with its cause. A read
// that does not end, as of a terminal, then ends with the process.
func Until(ctx context.Context, stdin io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, stdin)
		_ = in.CloseWithError(err) // without an error it is the end of the input
	}()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(context.Cause(ctx)) })
	return out
}
