// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/tidwall/gjson"
)

// Group is an assistant message with its calls and their results.
type Group struct {
	Message     canister.Assistant
	Invocations []canister.Invocation
	Results     []canister.Result // one for each invocation, in the same order
}

// Size returns how many canisters the group has.
func (g *Group) Size() int { return 1 + len(g.Invocations) + len(g.Results) }

// GroupAt returns the group whose message is at index i.
func GroupAt(history []canister.Canister, i int) (*Group, error) {
	g := &Group{Message: history[i].(canister.Assistant)}
	for _, c := range history[i+1:] {
		if call, ok := c.(canister.Invocation); ok && len(g.Results) == 0 {
			g.Invocations = append(g.Invocations, call)
		} else if result, ok := c.(canister.Result); ok && len(g.Results) < len(g.Invocations) {
			g.Results = append(g.Results, result)
		} else {
			break
		}
	}
	for n, call := range g.Invocations {
		if n >= len(g.Results) || g.Results[n].Invocation != call.ID {
			return nil, fmt.Errorf("the invocation %q in the history has no result in its place; sequence.Repair repairs that", call.ID)
		}
	}
	return g, nil
}

// CallID returns the ID that links a call and its result.
func CallID(call canister.Invocation) string {
	if call.CallID != "" {
		return call.CallID
	}
	return MadeCallID(call.ID)
}

// MadeCallID returns an ID for a call that has none. It has the form that servers expect,
// with at most 40 characters.
func MadeCallID(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "call_" + hex.EncodeToString(sum[:12])
}

// Calls builds the invocations of an answer.
type Calls struct {
	request     *converse.Request
	message     string // the ID of the Assistant
	Invocations []canister.Invocation
}

// NewCalls returns a builder for the answer to a request, whose Assistant has that ID.
func NewCalls(request *converse.Request, message string) *Calls {
	return &Calls{request: request, message: message}
}

// Add adds a call with the ID and the name that the server gave it. Calls without an ID of
// their own get one. It returns the invocation, which is valid until the next call of Add.
func (c *Calls) Add(callID, name, arguments string) *canister.Invocation {
	id := c.request.NewID()
	if callID == "" || slices.ContainsFunc(c.Invocations, func(i canister.Invocation) bool { return i.CallID == callID }) {
		callID = MadeCallID(id)
	}
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	c.Invocations = append(c.Invocations, canister.Invocation{
		Head: canister.Head{ID: id}, Message: c.message, CallID: callID, Name: ToolName(c.request.Tools, name), Arguments: arguments,
	})
	return &c.Invocations[len(c.Invocations)-1]
}

// CutOffArguments replaces the arguments of a call that was cut off before them. It is not
// JSON, so that the tool does not run as if it had been called without arguments, and the
// model learns that its call was cut off.
const CutOffArguments = "[cut off before the arguments]"

// OtherFinish returns a reason to stop that has no constant, in the server's word.
func OtherFinish(word string) canister.Finish {
	return canister.Finish(textcut.Bytes(strings.ToValidUTF8(word, "\uFFFD"), 100))
}

// EmptyResult returns the text that the model is sent for a result without content.
func EmptyResult(r canister.Result) string {
	if r.Failed() {
		return "[the call failed without an explanation: " + r.Code + "]"
	}
	return "[the tool succeeded and returned nothing]"
}

// LegalName returns the name of a called tool in a form that the API accepts. Only names
// that the model invented can be invalid. The server would reject the whole history
// because of one.
func LegalName(name string) string {
	legal := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if legal == "" {
		return "unnamed"
	}
	return legal[:min(len(legal), 64)]
}

// LegalArguments returns the arguments of a call in a form that servers accept. Many
// servers parse them, and reject the whole history if they are not an object. Invalid
// text is wrapped in an object, so that the model still sees what it wrote.
func LegalArguments(text string) string {
	if strings.TrimSpace(text) == "" {
		return "{}"
	}
	if json.Valid([]byte(text)) && gjson.Parse(text).IsObject() {
		return text
	}
	return string(append(jsontext.AppendMember([]byte{'{'}, "malformed_arguments", text), '}'))
}

// Walk calls write for each message of a history, or of the rest of one that starts at a
// message: with the canister, or, for an assistant message, with its group. length returns
// the length of what was written so far. Walk returns how many canisters later ones cannot
// change, and the length at that point.
func Walk(history []canister.Canister, write func(canister.Canister, *Group), length func() int) (settled, done int, err error) {
	for i := 0; i < len(history); {
		next, final := i+1, true
		switch c := history[i].(type) {
		case canister.Supervisor, canister.User, canister.Document:
			write(c, nil)
		case canister.Assistant:
			group, err := GroupAt(history, i)
			if err != nil {
				return 0, 0, err
			}
			write(c, group)
			next, final = i+group.Size(), len(group.Invocations) > 0
		case nil:
			return 0, 0, fmt.Errorf("the history has no canister at %d", i)
		default:
			return 0, 0, fmt.Errorf("the %s %q in the history does not belong to an earlier message; sequence.Repair repairs that", c.Kind(), c.Header().ID)
		}
		// A message without calls at the very end could still get some.
		if i = next; final || i < len(history) {
			done, settled = i, length()
		}
	}
	return settled, done, nil
}

// ToolName returns the name of the tool that a call refers to. gpt-oss and Kimi prefix the
// name with the namespace of their prompt format, as in functions.weather, and some servers
// do not remove it. A name that is offered as it is stays unchanged.
func ToolName(offered *converse.Toolset, name string) string {
	if bare, found := strings.CutPrefix(name, "functions."); found && !offers(offered, name) && offers(offered, bare) {
		return bare
	}
	return name
}

func offers(offered *converse.Toolset, name string) bool {
	return offered != nil && slices.ContainsFunc(offered.Definitions, func(d *invoker.Definition) bool { return d.Name == name })
}
