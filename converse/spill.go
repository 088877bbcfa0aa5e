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

// SpillFunc stores a piece of a result that is too large for the history and returns a
// link to it. The link follows the line that reports the cut. At most the first four
// such pieces of a result are spilled. It may be called concurrently, and with a
// context that has ended: the piece must be stored nevertheless. If it fails, the
// result has no link. See [SpillFolder], which also removes spilled pieces.
type SpillFunc func(ctx context.Context, conversation string, whole canister.Content) (canister.LinkContent, error)

// dataOf returns the bytes of a content and its media type.
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

// extension returns the file extension for a media type, or "".
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

// spiller calls a [SpillFunc] for one result.
type spiller struct {
	ctx          context.Context
	conversation string
	spill        SpillFunc
	logger       *zap.Logger
	begins       func() // called before spill; may be nil
}

// keep spills a piece if there is a function for it.
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

// call calls the program's function, which may panic.
func (s spiller) call(whole canister.Content) (link canister.LinkContent, err error) {
	defer caught("Options.Spill", &err)
	if s.begins != nil {
		s.begins()
	}
	link, err = s.spill(s.ctx, s.conversation, whole)
	return link, contain.Error(err)
}
