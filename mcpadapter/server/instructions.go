// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/ensemble"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// instructionsWait bounds how long a client's handshake waits for servers that are not
// connected; their instructions are then missing. The client's next request, the list
// of tools, waits for them in any case.
const instructionsWait = 5 * time.Second

// instruct adds the instructions of the roster's servers to the response of the
// handshake: initialize before 2026-07-28, and server/discover from then on.
func (s *Server) instruct(ctx context.Context, result mcp.Result, from *caller) {
	switch result := result.(type) {
	case *mcp.InitializeResult:
		result.Instructions = instructions(ctx, s.options.Instructions, s.selects.of(from))
	case *mcp.DiscoverResult:
		result.Instructions = instructions(ctx, s.options.Instructions, s.selects.of(from))
	}
}

// instructions returns the server's own instructions, followed by those of the roster's
// servers, each with the name of its author.
func instructions(ctx context.Context, own string, roster *ensemble.Selection) string {
	ctx, cancel := context.WithTimeout(ctx, instructionsWait)
	defer cancel()
	var texts []string
	if own != "" {
		texts = append(texts, own)
	}
	left := ensemble.MaxAllInstructions
	for _, said := range roster.Instructions(ctx) {
		said = said.Shortened(left)
		left -= utf8.RuneCountInString(said.Text)
		texts = append(texts, said.String())
	}
	return strings.Join(texts, "\n\n")
}
