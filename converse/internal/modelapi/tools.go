// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Tools encodes the tools of requests and caches recent encodings. It is safe for
// concurrent use.
type Tools struct {
	hosted [][]byte
	append AppendTool
	log    *zap.Logger

	mu      sync.Mutex
	entries []encodedTools // newest last
}

// AppendTool appends one tool in the form of an API. Its error is the reason why the API
// does not accept the tool.
type AppendTool func(dst []byte, definition *invoker.Definition) ([]byte, error)

// encodedTools is the tools member of a request for one toolset.
type encodedTools struct {
	set  *converse.Toolset
	text []byte
}

// maxToolsets limits the number of cached toolsets. A model that serves several rosters
// uses a few at a time.
const maxToolsets = 8

// noTools is the toolset of a request without one.
var noTools = &converse.Toolset{}

// NewTools returns an encoder. hosted are tools that the server runs, in the form of the
// API; they are part of each request for an answer of the conversation.
func NewTools(hosted []map[string]any, appendTool AppendTool, log *zap.Logger) (*Tools, error) {
	t := &Tools{append: appendTool, log: log}
	for _, tool := range hosted {
		text, err := jsontext.Encode(tool)
		if err != nil {
			return nil, fmt.Errorf("a hosted tool: %w", err)
		}
		t.hosted = append(t.hosted, text)
	}
	return t, nil
}

// Room returns how many tools of a conversation fit into a request that may have limit
// tools; 0 means no limit.
func (t *Tools) Room(limit int) int {
	if limit == 0 {
		return 0
	}
	return max(1, limit-len(t.hosted))
}

// encode returns the tools member of a request, which begins with a comma; nil
// without tools. Toolsets with equal definitions share an entry. Requests that are not for an
// answer of the conversation have no tools of the model's server. The tools of a sampling request
// are new each time, and would displace the toolsets of conversations.
func (t *Tools) encode(ctx context.Context, set *converse.Toolset, answers bool) []byte {
	if !answers {
		return t.encodeSet(ctx, set, nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, entry := range t.entries {
		if entry.set == set || slices.Equal(entry.set.Definitions, set.Definitions) {
			return entry.text
		}
	}
	text := t.encodeSet(ctx, set, t.hosted)
	if len(t.entries) == maxToolsets {
		t.entries = slices.Delete(t.entries, 0, 1)
	}
	t.entries = append(t.entries, encodedTools{set, text})
	return text
}

// encodeSet encodes a toolset. A tool that the API does not accept but that is offered
// anyway is left out and logged, because a request with it would fail as a whole.
func (t *Tools) encodeSet(ctx context.Context, set *converse.Toolset, hosted [][]byte) []byte {
	dst := []byte(`,"tools":[`)
	empty := len(dst)
	for _, tool := range hosted {
		dst = append(jsontext.AppendComma(dst), tool...)
	}
	for _, definition := range set.Definitions {
		longer, err := t.append(jsontext.AppendComma(dst), definition)
		if err != nil {
			logevent.Log(ctx, t.log, zapcore.WarnLevel, "a tool is set aside", logevent.ToolRefused, zap.String("tool", definition.Name), zap.Error(err))
			continue
		}
		dst = longer
	}
	if len(dst) == empty {
		return nil
	}
	return append(dst, ']')
}

// Tools returns the tools member of a request, which begins with a comma; nil without
// tools. The transcript keeps it for the next request with the same toolset: the cache
// of tools is too small for many rosters.
func (t *Transcript) Tools(ctx context.Context, tools *Tools, request *converse.Request) []byte {
	set := request.Tools
	if set == nil {
		set = noTools
	}
	if answers := request.Purpose.Answers(); t.offered != set || t.answers != answers {
		t.offered, t.answers, t.tools = set, answers, tools.encode(ctx, set, answers)
	}
	return t.tools
}

// forceRefused matches the refusals to force a call. Anthropic's models from Claude Fable 5.1
// on have the first words, and the first Claude Fable the second; other servers say the same
// of models that think.
var forceRefused = regexp.MustCompile(`(?i)not (supported|compatible)|(not|n't) support|incompatible|unsupported|may not be enabled`)

// RefusesForce reports whether a server has refused a request because it forces the model to
// call a tool.
func RefusesForce(failed *converse.ModelError) bool {
	return (failed.Status == http.StatusBadRequest || failed.Status == http.StatusUnprocessableEntity) &&
		strings.Contains(failed.Message, "tool_choice") && forceRefused.MatchString(failed.Message)
}
