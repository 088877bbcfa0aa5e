// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/internal/notes"
)

// aliases are names for the canisters of a history that are the same in every run: u1,
// a1, i1 and so on, by kind and position.
type aliases struct {
	byID map[string]string
	// forms are the JSON forms of the canisters, with aliases.
	forms map[string][]byte
	// number has the numbers of invocations by ID, counted from 1.
	number map[string]int
}

// letters are the prefixes of the aliases, by kind.
var letters = map[canister.Kind]string{
	canister.KindUser:       "u",
	canister.KindAssistant:  "a",
	canister.KindSupervisor: "s",
	canister.KindDocument:   "d",
	canister.KindInvocation: "i",
	canister.KindIntent:     "n",
}

func newAliases(history []canister.Canister) *aliases {
	a := &aliases{byID: map[string]string{}, forms: map[string][]byte{}, number: map[string]int{}}
	count := map[canister.Kind]int{}
	for _, c := range history {
		id := c.Header().ID
		count[c.Kind()]++
		switch c.Kind() {
		case canister.KindResult:
			a.byID[id] = a.id(c)
			continue
		case canister.KindInvocation:
			a.number[id] = count[c.Kind()]
		}
		a.byID[id] = fmt.Sprintf("%s%d", letters[c.Kind()], count[c.Kind()])
	}
	for _, c := range history {
		c = a.canister(c)
		if form, err := canister.Marshal(c); err == nil {
			a.forms[c.Header().ID] = form
		}
	}
	return a
}

// id returns the alias of a canister. The alias of a result comes from its invocation, so
// it is known before the result is in the history: r3 answers i3.
func (a *aliases) id(c canister.Canister) string {
	if result, ok := c.(canister.Result); ok && a.number[result.Invocation] > 0 {
		return fmt.Sprintf("r%d", a.number[result.Invocation])
	}
	return a.of(c.Header().ID)
}

func (a *aliases) of(id string) string {
	if alias := a.byID[id]; alias != "" {
		return alias
	}
	return id
}

// canister returns c with aliases instead of IDs, including the CallID, without its time, and
// without the key of an intent, which differs like the IDs.
func (a *aliases) canister(c canister.Canister) canister.Canister {
	head := c.Header()
	head.ID, head.Time = a.id(c), time.Time{}
	switch typed := c.(type) {
	case canister.Invocation:
		if n := a.number[typed.ID]; n > 0 && typed.Parent == "" {
			typed.CallID = fmt.Sprintf("call%d", n)
		}
		typed.Message, typed.Parent = a.of(typed.Message), a.of(typed.Parent)
		c = typed
	case canister.Result:
		typed.Invocation, typed.Parent = a.of(typed.Invocation), a.of(typed.Parent)
		c = typed
	case canister.Intent:
		typed.Invocation, typed.Key = a.of(typed.Invocation), ""
		c = typed
	case canister.Document:
		head.Metadata = a.mark(head.Metadata)
	}
	return canister.WithHead(c, head)
}

// mark replaces the ID in the compaction member of metadata with its alias.
func (a *aliases) mark(metadata canister.Fields) canister.Fields {
	var mark struct {
		Through string `json:"through"`
		Trim    int    `json:"trim,omitzero"`
		Tokens  int64  `json:"tokens"`
	}
	if json.Unmarshal(metadata[notes.CompactionKey], &mark) != nil {
		return metadata
	}
	mark.Through = a.of(mark.Through)
	metadata = maps.Clone(metadata)
	metadata[notes.CompactionKey], _ = json.Marshal(mark) // a string and numbers: cannot fail
	return metadata
}

// lines returns the events as canonical lines. Consecutive deltas are joined, and the
// events of the calls of one message are sorted by call.
func (a *aliases) lines(happened []happening) ([]string, error) {
	happened = joinDeltas(happened)
	a.order(happened)
	lines := make([]string, len(happened))
	for i, h := range happened {
		if h.event == nil {
			lines[i] = h.did
			continue
		}
		line, err := a.line(h.event)
		if err != nil {
			return nil, err
		}
		lines[i] = line
	}
	return lines, nil
}

func joinDeltas(happened []happening) []happening {
	var joined []happening
	for _, h := range happened {
		if last := len(joined) - 1; last >= 0 {
			switch event := h.event.(type) {
			case converse.TextDelta:
				if before, ok := joined[last].event.(converse.TextDelta); ok {
					joined[last].event = converse.TextDelta{Text: before.Text + event.Text}
					continue
				}
			case converse.ReasoningDelta:
				if before, ok := joined[last].event.(converse.ReasoningDelta); ok {
					joined[last].event = converse.ReasoningDelta{Text: before.Text + event.Text}
					continue
				}
			}
		}
		joined = append(joined, h)
	}
	return joined
}

// order sorts each sequence of call events by the number of the call.
func (a *aliases) order(happened []happening) {
	for begin := 0; begin < len(happened); begin++ {
		end := begin
		for end < len(happened) && a.call(happened[end]) > 0 {
			end++
		}
		slices.SortStableFunc(happened[begin:end], func(x, y happening) int { return a.call(x) - a.call(y) })
		begin = end
	}
}

// call returns the number of the call that a call event is about, or 0 for other events.
func (a *aliases) call(h happening) int {
	switch event := h.event.(type) {
	case converse.InvocationStarted:
		return a.number[event.Invocation.ID]
	case converse.InvocationProgressed:
		return a.number[event.Invocation.ID]
	case converse.InvocationCompleted:
		return a.number[event.Invocation.ID]
	}
	return 0
}

// line returns the JSON form of an event without the parts that differ between runs. If
// the history has the same canister, the line has only its alias.
func (a *aliases) line(event converse.Event) (string, error) {
	var alias string
	switch e := event.(type) {
	case converse.MessageCompleted:
		e.Message = a.canister(e.Message).(canister.Assistant)
		alias, event = e.Message.ID, e
	case converse.InvocationRequested:
		e.Invocation = a.invocation(e.Invocation)
		alias, event = e.Invocation.ID, e
	case converse.InvocationStarted:
		e.Invocation = a.invocation(e.Invocation)
		event = e
	case converse.InvocationProgressed:
		e.Invocation = a.invocation(e.Invocation)
		event = e
	case converse.InvocationCompleted:
		e.Invocation, e.Duration = a.invocation(e.Invocation), 0
		e.Result = a.canister(e.Result).(canister.Result)
		alias, event = e.Result.ID, e
	case converse.ExchangeRetried:
		e.Wait = 0
		event = e
	case converse.CompactionCompleted:
		e.Document, _ = a.canister(e.Document).(canister.Document)
		e.From, e.To, e.Duration = a.of(e.From), a.of(e.To), 0
		event = e
	case converse.ExchangeCompleted:
		e.Duration = 0
		event = e
	case converse.TurnCompleted:
		e.Turn.Answer.ID = a.of(e.Turn.Answer.ID)
		event = e
	default: // the other events are the same in each run
	}
	line, err := eventjson.Marshal(event)
	if err != nil {
		return "", err
	}
	// The canister is the last member, and quotes in texts are always escaped.
	before, form, ok := bytes.Cut(line, []byte(`,"canister":`))
	if ok && (a.forms[alias] == nil || bytes.Equal(bytes.TrimSuffix(form, []byte("}")), a.forms[alias])) {
		return fmt.Sprintf(`%s,"canister":%q}`, before, alias), nil
	}
	return string(line), nil
}

func (a *aliases) invocation(i canister.Invocation) canister.Invocation {
	return a.canister(i).(canister.Invocation)
}
