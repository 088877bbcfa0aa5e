// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/internal/tokenestimate"
)

// The server of a model reports the tokens of past requests. These numbers are used, with
// [tokenestimate.InText], to estimate everything added since.
const (
	tokensPerMessage = 8    // the overhead of a message
	tokensPerMedia   = 1000 // an image or audio, whatever its size
	tokensPerPage    = 2500 // of a PDF, as text and as an image (platform.claude.com, PDF support)
	bytesPerPage     = 64 << 10
)

// TokensOf estimates the tokens of a canister in a request.
func TokensOf(c canister.Canister) int64 {
	if !canister.Message(c) {
		return 0
	}
	tokens := int64(tokensPerMessage)
	if invocation, ok := c.(canister.Invocation); ok {
		return tokens + tokenestimate.InText(len(invocation.Name)+len(invocation.Arguments))
	}
	for _, content := range canister.ContentOf(c) {
		tokens += tokensIn(content)
	}
	return tokens
}

// tokensIn estimates the tokens of a content. A file that no API carries is a line of text.
func tokensIn(c canister.Content) int64 {
	size := bounds.Size(c)
	if IsMedia(c) {
		return tokensPerMedia
	}
	if pages, ok := Pages(c); ok {
		return min(tokenestimate.InText(size), int64(cmp.Or(pages, 1+size/bytesPerPage))*tokensPerPage)
	}
	if resource, ok := c.(canister.ResourceContent); ok && resource.Blob != nil {
		size = len(bounds.Describe(c))
	}
	return tokenestimate.InText(size)
}

// Pages returns how many pages a PDF file has; 0 if some may be compressed, as they can be since
// PDF 1.5 (ISO 32000-1, sections 7.5.7 and 7.7.3.3). ok is false if c is not a PDF file.
func Pages(c canister.Content) (pages int, ok bool) {
	resource, _ := c.(canister.ResourceContent)
	data := resource.Blob
	if !bytes.HasPrefix(data, []byte("%PDF-")) {
		return 0, false
	}
	if bytes.Contains(data, []byte("/ObjStm")) {
		return 0, true
	}
	for {
		at := bytes.Index(data, []byte("/Page"))
		if at < 0 {
			return pages, true
		}
		before := bytes.TrimRight(data[max(0, at-16):at], " \t\r\n")
		data = data[at+len("/Page"):]
		if bytes.HasSuffix(before, []byte("/Type")) && (len(data) == 0 || data[0] < 'A' || data[0] > 'z') {
			pages++
		}
	}
}

// IsMedia reports whether a content is an image, audio or the like.
func IsMedia(c canister.Content) bool {
	p := canister.PayloadOf(c)
	if p.Type == "resource" {
		return p.Data != nil && (strings.HasPrefix(p.MIME, "image/") || strings.HasPrefix(p.MIME, "audio/"))
	}
	return p.Type == "image" || p.Data != nil
}

// RequestTokens estimates the tokens of the next request: the tokens of the last request and its
// answer, as the server counted them, or the number in the last mark, plus estimates
// for everything after it. It does not look further back.
func RequestTokens(history []canister.Canister) int64 {
	var tokens int64
	for i := len(history) - 1; i >= 0; i-- {
		if said, ok := history[i].(canister.Assistant); ok && said.Usage != nil && said.Usage.Input > 0 {
			return tokens + cmp.Or(said.Usage.Context, said.Usage.Input+max(0, said.Usage.Output-said.Usage.Reasoning))
		}
		if mark, ok := MarkOf(history[i]); ok && mark.In(history[:i]) >= 0 {
			return tokens + mark.Tokens
		}
		tokens += TokensOf(history[i])
	}
	return tokens
}
