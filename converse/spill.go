// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"mime"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// SpillFunc keeps a piece of a result of a conversation that is too large for the
// history and returns a link to it, which takes its place behind the line that
// says what was cut. Of one result the first four such pieces are spilled. It may
// be called concurrently, and with a context that has ended: the piece is there
// all the same. When it fails, the result does without the link. See
// [SpillFolder], which also removes what is spilled.
type SpillFunc func(ctx context.Context, conversation string, whole canister.Content) (canister.LinkContent, error)

// dataOf returns the bytes of a content and their media type.
func dataOf(content canister.Content) ([]byte, string) {
	switch c := content.(type) {
	case canister.TextContent:
		return []byte(c.Text), "text/plain"
	case canister.ImageContent:
		return c.Data, c.MIME
	case canister.AudioContent:
		return c.Data, c.MIME
	case canister.ResourceContent:
		if c.Blob != nil {
			return c.Blob, c.MIME
		}
		return []byte(c.Text), c.MIME
	case canister.StructuredContent:
		return c.JSON, "application/json"
	}
	return nil, ""
}

// extension returns the end of the name of a file, or "".
func extension(mimeType string) string {
	switch mimeType {
	case "text/plain":
		return ".txt"
	case "application/json":
		return ".json"
	}
	if ends, err := mime.ExtensionsByType(mimeType); err == nil && len(ends) > 0 {
		return ends[0]
	}
	return ""
}

// spiller is a [SpillFunc] at work on one result.
type spiller struct {
	ctx          context.Context
	conversation string
	spill        SpillFunc
	logger       *zap.Logger
	begins       func() // is called before the function is; may be nil
}

// keep spills a piece, if there is somewhere to spill it.
func (s spiller) keep(whole canister.Content) (canister.LinkContent, bool) {
	if s.spill == nil {
		return canister.LinkContent{}, false
	}
	link, err := s.call(whole)
	if err != nil {
		event.Log(s.ctx, s.logger, zapcore.ErrorLevel, "a piece of a result could not be spilled", event.SpillFailed, zap.Error(err))
		return canister.LinkContent{}, false
	}
	return link, true
}

// call calls the embedder's function, which may panic.
func (s spiller) call(whole canister.Content) (link canister.LinkContent, err error) {
	defer caught("Options.Spill", &err)
	if s.begins != nil {
		s.begins()
	}
	link, err = s.spill(s.ctx, s.conversation, whole)
	return link, contain.Error(err)
}
