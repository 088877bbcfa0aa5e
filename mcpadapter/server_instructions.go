// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/ensemble"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// instructionsWait bounds how long a client that introduces itself waits for
// servers that are not connected, whose instructions are missing then. Its next
// request, the list of tools, waits for them in any case.
const instructionsWait = 5 * time.Second

// instruct adds what the servers behind say about their use to the answer of the
// handshake: initialize before 2026-07-28, and then server/discover.
func (s *Server) instruct(ctx context.Context, result mcp.Result) {
	switch result := result.(type) {
	case *mcp.InitializeResult:
		result.Instructions = s.instructions(ctx)
	case *mcp.DiscoverResult:
		result.Instructions = s.instructions(ctx)
	}
}

// instructions are those of the server itself, in full, and behind them those of
// the servers behind, each with the name of its author.
func (s *Server) instructions(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, instructionsWait)
	defer cancel()
	var texts []string
	if s.options.Instructions != "" {
		texts = append(texts, s.options.Instructions)
	}
	left := ensemble.MaxAllInstructions
	for _, said := range s.roster.Instructions(ctx) {
		said = said.Shortened(left)
		left -= utf8.RuneCountInString(said.Text)
		texts = append(texts, said.String())
	}
	return strings.Join(texts, "\n\n")
}
