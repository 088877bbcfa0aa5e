// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/url"
	"os"
	"path/filepath"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/writefile"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// SpillFunc keeps a piece of a result that is too large for the history and
// returns a link to it, which takes its place behind the line that says what
// was cut. Of one result the first four such pieces are spilled. It may be
// called concurrently, and with a context that has ended: the piece is there
// all the same. When it fails, the result does without the link.
type SpillFunc func(ctx context.Context, whole canister.Content) (canister.LinkContent, error)

// SpillTo keeps pieces as files in a folder, which it makes if need be, each
// under a name made from its content, for the owner of the process alone.
// Nobody deletes them. It spills what has text or data.
func SpillTo(folder string) SpillFunc {
	return func(_ context.Context, whole canister.Content) (canister.LinkContent, error) {
		data, mimeType := dataOf(whole)
		if data == nil {
			return canister.LinkContent{}, fmt.Errorf("%s has no data to keep", what(whole))
		}
		path, err := filepath.Abs(folder)
		if err == nil {
			err = os.MkdirAll(path, 0o700)
		}
		if err != nil {
			return canister.LinkContent{}, err
		}
		sum := sha256.Sum256(data)
		name := hex.EncodeToString(sum[:16]) + extension(mimeType)
		path = filepath.Join(path, name)
		write := func(file *os.File) error { _, err := file.Write(data); return err }
		if _, err := writefile.Replace(path, &writefile.Options{Temporary: ".spill-*"}, write); err != nil {
			return canister.LinkContent{}, err
		}
		size := int64(len(data))
		address := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
		return canister.LinkContent{URI: address.String(), Name: name, Title: "the whole of it", MIME: mimeType, Size: &size}, nil
	}
}

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
	ctx    context.Context
	spill  SpillFunc
	logger *zap.Logger
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
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the function panicked: %v", value)
		}
	}()
	return s.spill(s.ctx, whole)
}
