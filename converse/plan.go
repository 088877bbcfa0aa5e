// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"github.com/consort-go/consort/canister"
)

// planning looks for a way to shorten a history.
type planning struct {
	Compaction // with defaults
	history    []canister.Canister
	marks      marks
	window     int64 // tokens
	before     int64
	guessed    int64 // an estimate of before without the server's counts
	refused    int64 // Policy.RefusedPart
}

// compact returns whether the conversation must be compacted before the model is asked,
// and how. Without ask it considers only compactions that need no model.
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

// lesser returns the lower of two numbers; 0 means no number.
func lesser(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// worth is the minimum gain in tokens; without one, compaction could repeat endlessly.
func (p *planning) worth() int64 {
	if p.before < p.window {
		return max(1, p.window/10)
	}
	return max(1, p.window/50)
}

// find keeps as many exchanges as possible while it gets far enough below the window
// that the next compaction is not needed soon.
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
		// The results of the model's last calls do not fit.
		if c := p.trim(len(p.history)); c.After < best.After {
			best = c
		}
	}
	return best, best.Through != ""
}

// cutBefore returns the index where the last exchanges begin: a message of the model,
// or the user's messages just before it.
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

// trim cuts the results before an index.
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

// summary summarises the canisters before an index, or as many of them as fit into one
// request for a summary.
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

// part returns how many tokens of history a request for a summary may have: a window,
// minus the answer and the overhead.
func (p *planning) part() int64 {
	const rest = 1000
	window := lesser(p.window, p.refused)
	return max(window-p.MaxTokens-rest, window/4)
}

// within returns the last index up to cut where the history can be cut so that the
// digest of the part before it has at most that many tokens. If a summary of that part
// is not worth it, it returns the first index where one is; the digest is then
// shortened to fit. It also returns the tokens of that part in a request.
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

// hiddenBy returns the tokens that a summary of everything before an index removes from
// a request. The parameter tokens counts the part after the existing summary.
// Instructions stay in front, and so does the user's last message.
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

// freed scales estimated tokens to the server's count: it returns how many tokens a
// request saves without the parts that are estimated at that many.
func (p *planning) freed(tokens int64) int64 {
	if p.guessed > p.before {
		tokens = tokens * p.before / p.guessed
	}
	return max(0, tokens)
}

// guess estimates the tokens of the request that is too long.
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
