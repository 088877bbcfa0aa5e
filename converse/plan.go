// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"github.com/consort-go/consort/canister"
)

// planning looks for what makes a history shorter.
type planning struct {
	Compaction // with defaults
	history    []canister.Canister
	marks      marks
	window     int64 // tokens
	before     int64
	guessed    int64 // what before would be without what the server has counted
	refused    int64 // Policy.RefusedPart
}

// compact tells whether the conversation has to be compacted before the model is
// asked, and how. Without ask it may only be what needs no model.
func (p Policy) compact(history []canister.Canister, ask bool) (Compact, bool) {
	if p.Compaction == nil {
		return Compact{}, false
	}
	options := p.options()
	window := lesser(options.Window, p.Refused)
	before := load(history)
	if window == 0 || float64(before) < options.At*float64(window) {
		return Compact{}, false
	}
	planning := planning{Compaction: options, history: history, marks: readMarks(history), window: window, before: before, refused: p.RefusedPart}
	planning.guessed = planning.guess()
	return planning.find(ask)
}

// lesser returns the lesser of two numbers of which 0 is none.
func lesser(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// worth is what has to be gained at least: otherwise there would be no end of it.
func (p *planning) worth() int64 {
	if p.before < p.window {
		return max(1, p.window/10)
	}
	return max(1, p.window/50)
}

// find keeps as many exchanges as it can and still gets far enough below the
// window that some time passes before the next compaction.
func (p *planning) find(ask bool) (Compact, bool) {
	enough := int64(p.At * float64(p.window) * 2 / 3)
	best := Compact{After: p.before - p.worth() + 1}
	for keep := p.Keep; keep > 0; keep /= 2 {
		cut := p.cutBefore(keep)
		found := []Compact{p.trim(cut)}
		if ask {
			found = append(found, p.summary(cut))
		}
		for _, c := range found {
			if c.After < best.After {
				best = c
			}
			if best.Through != "" && best.After <= enough {
				return best, true
			}
		}
	}
	if p.before >= p.window && best.Through == "" {
		// The model cannot be told what it has just asked for.
		if c := p.trim(len(p.history)); c.After < best.After {
			best = c
		}
	}
	return best, best.Through != ""
}

// cutBefore returns where the last exchanges begin: at a message of the model,
// or at what was said to it just before.
func (p *planning) cutBefore(keep int) int {
	cut := len(p.history)
	for keep > 0 && cut > p.marks.through+1 {
		cut--
		if _, ok := p.history[cut].(canister.Assistant); ok {
			keep--
		}
	}
	for cut > p.marks.through+1 && isUser(p.history[cut-1]) {
		cut--
	}
	return cut
}

func isUser(c canister.Canister) bool { return c.Kind() == canister.KindUser }

// trim cuts the results before a place.
func (p *planning) trim(cut int) Compact {
	c := Compact{Trim: p.Trim, Before: p.before, After: p.before, marks: p.marks, cut: cut}
	from := max(p.marks.through, p.marks.trim) + 1
	if p.Trim < 0 || cut <= from {
		return c
	}
	c.Through = p.history[cut-1].Header().ID
	var tokens int64
	for _, old := range p.history[from:cut] {
		if result, ok := old.(canister.Result); ok {
			tokens += max(0, tokensOf(old)-tokensOf(trimmed(result, p.Trim)))
		}
	}
	c.After -= p.freed(tokens)
	return c
}

// summary has a summary stand for what is before a place, or for as much of it
// as the one who writes it can be told at once.
func (p *planning) summary(cut int) Compact {
	c := Compact{Before: p.before, After: p.before, marks: p.marks}
	from := p.marks.through + 1
	c.part = p.part()
	c.cut, c.hidden = p.within(from, cut, c.part)
	if c.cut == from {
		return c
	}
	c.Through = p.history[c.cut-1].Header().ID
	c.hidden = p.hiddenBy(c.cut, c.hidden)
	c.After = p.before - c.hidden + min(p.MaxTokens, c.hidden/2)
	return c
}

// part is how many tokens of history a request for a summary may have: a window,
// without the answer and the rest.
func (p *planning) part() int64 {
	const rest = 1000
	window := lesser(p.window, p.refused)
	return max(window-p.MaxTokens-rest, window/4)
}

// within returns the last place up to cut at which the history can be cut so that
// what is before it has at most that many tokens as a summary is told of it, or
// the first at which it is worth it, since then that is told of in fewer; and the
// tokens that a request has of what is before it.
func (p *planning) within(from, cut int, most int64) (int, int64) {
	place, enough := from, false
	var tokens, passed, digest int64
	for i := from; i <= cut; i++ {
		if i > from && (i == cut || opens(p.history[i])) {
			if digest > most && enough {
				break
			}
			place, tokens = i, passed
			enough = p.hiddenBy(place, tokens) >= 2*p.worth()
		}
		if i == cut {
			break
		}
		for _, told := range p.marks.tell(nil, i, p.history[i]) {
			passed += tokensOf(told)
			digest += digestTokens(told, p.digestTrim())
		}
	}
	return place, tokens
}

// hiddenBy is what a summary of all before a place takes out of a request, of
// which that much is from behind the summary that there is. Instructions stay in
// front, and so does what the user said last.
func (p *planning) hiddenBy(cut int, tokens int64) int64 {
	if p.marks.summary >= 0 {
		tokens += tokensOf(p.history[p.marks.summary])
	}
	for _, c := range p.history[p.marks.through+1 : cut] {
		if _, ok := c.(canister.Supervisor); ok {
			tokens -= tokensOf(c)
		}
	}
	user := lastUser(p.history)
	if p.marks.user >= 0 {
		tokens += tokensOf(p.history[p.marks.user])
	}
	if user >= 0 && user < cut {
		tokens -= tokensOf(p.history[user])
	}
	return p.freed(tokens)
}

// freed is how many tokens less a request has, as its server counts, without
// what is guessed to have that many.
func (p *planning) freed(tokens int64) int64 {
	if p.guessed > p.before {
		tokens = tokens * p.before / p.guessed
	}
	return max(0, tokens)
}

// guess is what the request that is too long is guessed to have.
func (p *planning) guess() int64 {
	var tokens int64
	for i, c := range p.history[p.marks.through+1:] {
		for _, told := range p.marks.tell(nil, p.marks.through+1+i, c) {
			tokens += tokensOf(told)
		}
	}
	for _, place := range []int{p.marks.summary, p.marks.user} {
		if place >= 0 {
			tokens += tokensOf(p.history[place])
		}
	}
	return tokens
}
