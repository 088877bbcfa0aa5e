// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/display"
)

// The limits for servers' instructions, in characters.
const (
	// maxInstructions is how much of the instructions of one ensemble is passed on.
	maxInstructions = 4000
	// MaxAllInstructions is how much of the instructions of all ensembles together is
	// passed on.
	MaxAllInstructions = 16_000
)

// Instructions are a server's advice about the use of its tools (MCP 2025-11-25, schema
// § InitializeResult), as passed to models and to clients of a gateway.
type Instructions struct {
	Ensemble string
	// Text has no invisible characters and no secrets ([Options].Redact), and at most
	// 4,000 characters. It is not trusted: the server wrote it.
	Text string
	// Omitted is the number of characters that were cut off.
	Omitted int
}

// String returns the text with its author. Each line of the text begins with "> ", so
// that it cannot pass for a line of this program or another server.
func (i Instructions) String() string {
	name, _ := display.Without(i.Ensemble, isInvisibleInName)
	text := fmt.Sprintf("The server %q says about its tools:\n> %s", name, strings.ReplaceAll(i.Text, "\n", "\n> "))
	if i.Omitted > 0 {
		text += fmt.Sprintf("\n[%d of %d characters omitted]", i.Omitted, i.Omitted+utf8.RuneCountInString(i.Text))
	}
	return text
}

// Shortened returns the instructions with the text cut to at most that many characters.
func (i Instructions) Shortened(most int) Instructions {
	n := utf8.RuneCountInString(i.Text)
	if n <= most {
		return i
	}
	end := 0
	for range most {
		_, size := utf8.DecodeRuneInString(i.Text[end:])
		end += size
	}
	i.Text, i.Omitted = i.Text[:end], i.Omitted+n-most
	return i
}

// instructionsOf returns the instructions of a connection; Text is empty if it gives
// none.
func (e *Ensemble) instructionsOf(connection Connection) Instructions {
	said := Instructions{Ensemble: e.name}
	if !e.options.OmitInstructions {
		text, _ := display.Without(e.foreign.peerOf(connection).Instructions, display.IsInvisible)
		if text = strings.TrimSpace(text); text != "" {
			said.Text = e.options.Redact(text)
		}
	}
	return said.Shortened(maxInstructions)
}

// Instructions returns the instructions of the ensembles that offer at least one tool,
// in the order of the roster.
func (c *Catalog) Instructions() []Instructions {
	return instructionsOf(c.offers)
}

// instructionsOf returns the instructions of the offers with a tool.
func instructionsOf(offers []*offer) []Instructions {
	var all []Instructions
	for _, o := range offers {
		if o != nil && o.instructions.Text != "" && len(o.tools) > 0 {
			all = append(all, o.instructions)
		}
	}
	return all
}

// Instructions returns the same as [Catalog.Instructions], but waits for ensembles that
// are not connected no longer than ctx lasts: their instructions are then missing. It
// returns soon after ctx ends.
func (r *Roster) Instructions(ctx context.Context) []Instructions {
	return instructionsOf(r.offersSoon(ctx))
}

// offersSoon returns the offers of the ensembles; nil for one that is not connected when
// ctx ends.
func (r *Roster) offersSoon(ctx context.Context) []*offer {
	ensembles := r.now().ensembles
	offers := make([]*offer, len(ensembles))
	var waiting sync.WaitGroup
	for i, e := range ensembles {
		waiting.Go(func() { offers[i], _ = e.offeredSoon(ctx) })
	}
	waiting.Wait()
	return offers
}
