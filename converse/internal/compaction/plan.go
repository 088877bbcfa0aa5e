// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"cmp"

	"github.com/consort-go/consort/canister"
)

// The defaults of [Options].
const (
	defaultCompactAt        = 0.8
	defaultCompactKeep      = 4
	defaultCompactTrim      = 2 << 10
	defaultCompactMaxTokens = 4096
)

// Options say how to shorten a history; see converse.Compaction.
type Options struct {
	Window    int64   // the tokens that the model accepts, or 0
	At        float64 // the share of Window that starts compaction
	Keep      int     // how many exchanges at the end stay
	Trim      int     // the bytes that older results are cut to first; negative cuts none
	MaxTokens int64   // of a summary
}

// WithDefaults replaces each zero by its default, for a model that has refused a
// request of so many tokens; 0 means none.
func (o Options) WithDefaults(refused int64) Options {
	most := int64(defaultCompactMaxTokens)
	if window := lesser(o.Window, refused); window > 0 {
		most = max(1, min(most, window/8))
	}
	o.At = cmp.Or(o.At, defaultCompactAt)
	o.Keep = cmp.Or(o.Keep, defaultCompactKeep)
	o.Trim = cmp.Or(o.Trim, defaultCompactTrim)
	o.MaxTokens = cmp.Or(o.MaxTokens, most)
	return o
}

// Plan is a compaction of a history.
type Plan struct {
	Through       string // the ID of the last canister that it covers
	Trim          int    // the bytes that results are cut to; 0 if the model summarises everything up to Through
	Before, After int64  // the estimated tokens of the next request

	Cut    int   // the index after Through
	Hidden int64 // the tokens that a summary replaces
	Part   int64 // the tokens that a request for a summary may have

	marks Marks // the existing marks
}

// From returns the index of the first canister that the plan covers.
func (p *Plan) From() int {
	from := p.marks.Through + 1
	if p.Trim > 0 {
		from = max(from, p.marks.trim+1)
	}
	return from
}

// Told returns the canisters that a summary replaces, as the model received them.
func (p *Plan) Told(history []canister.Canister) []canister.Canister {
	m := p.marks
	var told []canister.Canister
	if m.Summary >= 0 {
		told = append(told, history[m.Summary])
	}
	for i := m.Through + 1; i < p.Cut; i++ {
		told = m.tell(told, i, history[i])
	}
	return canister.Messages(told)
}

// planning looks for a way to shorten a history.
type planning struct {
	options Options // with defaults
	history []canister.Canister
	marks   Marks
	window  int64 // tokens
	before  int64
	guessed int64 // an estimate of before without the server's counts
	refused int64 // the tokens of a refused request for a summary
}

// Find returns whether a history must be compacted before the model is asked, and
// how. Refused and refusedPart are the tokens of requests that the model refused, for
// an answer and for a summary; 0 means none. Without ask it considers only compactions
// that need no model.
func Find(history []canister.Canister, options Options, refused, refusedPart int64, ask bool) (Plan, bool) {
	window := lesser(options.Window, refused)
	before := RequestTokens(history)
	if window == 0 || float64(before) < options.At*float64(window) {
		return Plan{}, false
	}
	planning := planning{options: options, history: history, marks: ReadMarks(history), window: window, before: before, refused: refusedPart}
	planning.guessed = planning.guess()
	return planning.find(ask)
}

// Summary returns a summary of everything before the last exchanges, whatever the size of
// the history; ok is false if it would not make the next request shorter. Refused and
// refusedPart are as for [Find]. A model with an unknown window accepts at least what it
// has accepted so far.
func Summary(history []canister.Canister, options Options, refused, refusedPart int64) (_ Plan, ok bool) {
	before := RequestTokens(history)
	window := cmp.Or(lesser(options.Window, refused), before+options.MaxTokens)
	p := planning{options: options, history: history, marks: ReadMarks(history), window: window, before: before, refused: refusedPart}
	p.guessed = p.guess()
	for keep := options.Keep; keep > 0; keep /= 2 {
		if c := p.summary(p.cutBefore(keep)); c.Through != "" && c.After < c.Before {
			return c, true
		}
	}
	return Plan{}, false
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
func (p *planning) find(ask bool) (Plan, bool) {
	enough := int64(p.options.At * float64(p.window) * 2 / 3)
	best := Plan{After: p.before - p.worth() + 1}
	for keep := p.options.Keep; keep > 0; keep /= 2 {
		cut := p.cutBefore(keep)
		found := []Plan{p.trim(cut)}
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
	for keep > 0 && cut > p.marks.Through+1 {
		cut--
		if _, ok := p.history[cut].(canister.Assistant); ok {
			keep--
		}
	}
	for cut > p.marks.Through+1 && isUser(p.history[cut-1]) {
		cut--
	}
	return cut
}

func isUser(c canister.Canister) bool { return c.Kind() == canister.KindUser }

// trim cuts the results before an index.
func (p *planning) trim(cut int) Plan {
	c := Plan{Trim: p.options.Trim, Before: p.before, After: p.before, marks: p.marks, Cut: cut}
	from := max(p.marks.Through, p.marks.trim) + 1
	if p.options.Trim < 0 || cut <= from {
		return c
	}
	c.Through = p.history[cut-1].Header().ID
	var tokens int64
	for _, old := range p.history[from:cut] {
		if result, ok := old.(canister.Result); ok {
			tokens += max(0, TokensOf(old)-TokensOf(trimmed(result, p.options.Trim)))
		}
	}
	c.After -= p.freed(tokens)
	return c
}

// summary summarises the canisters before an index, or as many of them as fit into one
// request for a summary.
func (p *planning) summary(cut int) Plan {
	c := Plan{Before: p.before, After: p.before, marks: p.marks}
	from := p.marks.Through + 1
	c.Part = p.part()
	c.Cut, c.Hidden = p.within(from, cut, c.Part)
	if c.Cut == from {
		return c
	}
	c.Through = p.history[c.Cut-1].Header().ID
	c.Hidden = p.hiddenBy(c.Cut, c.Hidden)
	c.After = p.before - c.Hidden + min(p.options.MaxTokens, c.Hidden/2)
	return c
}

// part returns how many tokens of history a request for a summary may have: a window,
// minus the answer and the overhead.
func (p *planning) part() int64 {
	const rest = 1000
	window := lesser(p.window, p.refused)
	return max(window-p.options.MaxTokens-rest, window/4)
}

// within returns the last index up to cut where the history can be cut so that the
// digest of the part before it has at most that many tokens. If a summary of that part
// is not worth it, it returns the first index where one is; the digest is then
// shortened to fit. It also returns the tokens of that part in a request.
func (p *planning) within(from, cut int, most int64) (int, int64) {
	place, enough := from, false
	var tokens, passed, digest int64
	for i := from; i <= cut; i++ {
		if i > from && (i == cut || Opens(p.history[i])) {
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
			passed += TokensOf(told)
			digest += digestTokens(told, p.options.DigestTrim())
		}
	}
	return place, tokens
}

// hiddenBy returns the tokens that a summary of everything before an index removes from
// a request. The parameter tokens counts the part after the existing summary.
// Instructions stay in front, and so does the user's last message.
func (p *planning) hiddenBy(cut int, tokens int64) int64 {
	if p.marks.Summary >= 0 {
		tokens += TokensOf(p.history[p.marks.Summary])
	}
	for _, c := range p.history[p.marks.Through+1 : cut] {
		if _, ok := c.(canister.Supervisor); ok {
			tokens -= TokensOf(c)
		}
	}
	user := LastUser(p.history)
	if p.marks.User >= 0 {
		tokens += TokensOf(p.history[p.marks.User])
	}
	if user >= 0 && user < cut {
		tokens -= TokensOf(p.history[user])
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
	for i, c := range p.history[p.marks.Through+1:] {
		for _, told := range p.marks.tell(nil, p.marks.Through+1+i, c) {
			tokens += TokensOf(told)
		}
	}
	for _, place := range []int{p.marks.Summary, p.marks.User} {
		if place >= 0 {
			tokens += TokensOf(p.history[place])
		}
	}
	return tokens
}
