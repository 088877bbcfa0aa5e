// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// fileScript is the JSON form of a script.
type fileScript struct {
	Repeat   bool       `json:"repeat"`
	Provider string     `json:"provider"`
	Steps    []fileStep `json:"steps"`
}

type fileStep struct {
	Expect fileExpect  `json:"expect"`
	Before []fileReply `json:"before"`
	fileReply
}

type fileExpect struct {
	LastRole     string   `json:"last_role"`
	Contains     []string `json:"contains"`
	ToolMessages int      `json:"tool_messages"`
	Offers       []string `json:"offers"`
	NoTools      bool     `json:"no_tools"`
	Model        string   `json:"model"`
}

// fileReply holds exactly one of its members.
type fileReply struct {
	Message *fileMessage `json:"message"`
	Failure *fileFailure `json:"failure"`
	Replay  *fileReplay  `json:"replay"`
	Oddity  string       `json:"oddity"`
}

type fileMessage struct {
	Text      string       `json:"text"`
	Reasoning string       `json:"reasoning"`
	Refusal   string       `json:"refusal"`
	Calls     []fileCall   `json:"calls"`
	Finish    string       `json:"finish"`
	Usage     *Usage       `json:"usage"`
	Delta     int          `json:"delta"`
	Pace      fileDuration `json:"pace"`
	Delay     fileDuration `json:"delay"`
}

type fileCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type fileFailure struct {
	Status  int               `json:"status"`
	Message string            `json:"message"`
	Type    string            `json:"type"`
	Param   string            `json:"param"`
	Code    string            `json:"code"`
	Headers map[string]string `json:"headers"`
	Delay   fileDuration      `json:"delay"`
}

type fileReplay struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Split   int               `json:"split"`
	Pause   fileDuration      `json:"pause"`
	End     End               `json:"end"`
	Delay   fileDuration      `json:"delay"`
	Wire    bool              `json:"wire"`
}

// fileDuration is a duration in the format of [time.ParseDuration].
type fileDuration time.Duration

func (d *fileDuration) UnmarshalText(text []byte) error {
	span, err := time.ParseDuration(string(text))
	*d = fileDuration(span)
	return err
}

// ParseScript reads a script in its JSON form:
//
//	{
//	  "repeat": false,
//	  "provider": "",
//	  "steps": [
//	    {
//	      "expect": {"last_role": "user", "contains": ["Oslo"], "offers": ["weather__now"]},
//	      "before": [{"failure": {"status": 500}}],
//	      "message": {"calls": [{"name": "weather__now", "arguments": {"city": "Oslo"}}]}
//	    },
//	    {"expect": {"tool_messages": 1}, "message": {"text": "It rains.", "pace": "20ms"}},
//	    {"oddity": "index-missing"},
//	    {"replay": {"body": "data: [DONE]\n\n", "split": 3, "pause": "1ms", "end": "cut"}}
//	  ]
//	}
//
// A step, and each reply under before, has exactly one of message, failure, replay and
// oddity. The members are the fields of [Expect], [Message], [Call], [Failure] and
// [Replay] in snake case. Durations are strings such as "20ms". Arguments are an object,
// or a string that is sent unchanged. The body of a replay is cut into parts of split
// bytes, each sent after pause. Unknown members are errors.
func ParseScript(data []byte) (Script, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var file fileScript
	if err := decoder.Decode(&file); err != nil {
		return Script{}, fmt.Errorf("openaiserver: read script: %w", err)
	}
	if decoder.More() {
		return Script{}, errors.New("openaiserver: read script: more follows the script")
	}
	if _, known := providerRules[file.Provider]; !known {
		return Script{}, fmt.Errorf("openaiserver: read script: there is no provider %q", file.Provider)
	}
	script := Script{Repeat: file.Repeat, Provider: file.Provider}
	for i, s := range file.Steps {
		step, err := s.step()
		if err != nil {
			return Script{}, fmt.Errorf("openaiserver: read script: step %d: %w", i, err)
		}
		script.Steps = append(script.Steps, step)
	}
	return script, nil
}

func (s *fileStep) step() (Step, error) {
	step := Step{Expect: Expect(s.Expect)}
	for i, b := range s.Before {
		reply, err := b.reply()
		if err != nil {
			return Step{}, fmt.Errorf("before %d: %w", i, err)
		}
		step.Before = append(step.Before, reply)
	}
	var err error
	step.Reply, err = s.fileReply.reply()
	return step, err
}

// reply returns the reply of the only member that is set.
func (f *fileReply) reply() (Reply, error) {
	var replies []Reply
	if f.Message != nil {
		replies = append(replies, f.Message.message())
	}
	if f.Failure != nil {
		replies = append(replies, f.Failure.failure())
	}
	if f.Replay != nil {
		replay, err := f.Replay.replay()
		if err != nil {
			return nil, err
		}
		replies = append(replies, replay)
	}
	if f.Oddity != "" {
		reply, err := oddityReply(f.Oddity)
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	if len(replies) != 1 {
		return nil, fmt.Errorf("needs exactly one of message, failure, replay and oddity, has %d", len(replies))
	}
	return replies[0], nil
}

// oddityReply returns the oddity with that name of the API of a request.
func oddityReply(name string) (Reply, error) {
	if !slices.ContainsFunc([]api{chatAPI, responsesAPI, messagesAPI}, func(kind api) bool { _, err := findOddity(kind, name); return err == nil }) {
		return nil, fmt.Errorf("there is no oddity %q", name)
	}
	return Respond(func(r *Request) Reply {
		replay, err := findOddity(r.api, name)
		if err != nil {
			return *departed("%v", err)
		}
		return replay
	}), nil
}

func (f *fileMessage) message() Message {
	m := Message{
		Text: f.Text, Reasoning: f.Reasoning, Refusal: f.Refusal, Finish: f.Finish, Usage: f.Usage,
		Delta: f.Delta, Pace: time.Duration(f.Pace), Delay: time.Duration(f.Delay),
	}
	for _, c := range f.Calls {
		call := Call{ID: c.ID, Name: c.Name}
		if json.Unmarshal(c.Arguments, &call.Arguments) != nil {
			call.Arguments = string(c.Arguments) // not a string: sent unchanged
		}
		m.Calls = append(m.Calls, call)
	}
	return m
}

func (f *fileFailure) failure() Failure {
	return Failure{
		Status: f.Status, Message: f.Message, Type: f.Type, Param: f.Param, Code: f.Code,
		Header: httpHeader(f.Headers), Delay: time.Duration(f.Delay),
	}
}

func (f *fileReplay) replay() (Replay, error) {
	switch f.End {
	case EndClean, EndCut, EndReset, EndStall:
	default:
		return Replay{}, fmt.Errorf("end is %q, want cut, reset, stall, or none", f.End)
	}
	parts := Split([]byte(f.Body), f.Split)
	for i := range parts {
		parts[i].Pause = time.Duration(f.Pause)
	}
	return Replay{
		Status: f.Status, Header: httpHeader(f.Headers), Parts: parts,
		End: f.End, Delay: time.Duration(f.Delay), Wire: f.Wire,
	}, nil
}

func httpHeader(members map[string]string) http.Header {
	header := make(http.Header, len(members))
	for name, value := range members {
		header.Set(name, value)
	}
	return header
}
