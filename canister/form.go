// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// member is one member of an object of the JSON form: its name, and the struct
// field that its value is written from and read into. The functions below list
// the members of each kind once for both directions, in the order of writing.
type member struct {
	name  string
	value value
}

// value converts one sort of Go value to and from JSON; see values.go.
type value interface {
	absent() bool // the member is left out
	append(dst []byte) ([]byte, error)
	read(raw []byte) error
}

// members returns the members of a kind. v is the first version of the form that has it.
func (h *Head) members(v version, kind value, own ...member) []member {
	list := make([]member, 0, 5+len(own))
	list = append(list,
		member{"kind", kind},
		member{"v", v},
		member{"id", (*text)(&h.ID)},
		member{"time", (*instant)(&h.Time)})
	list = append(list, own...)
	return append(list, member{"metadata", (*fields)(&h.Metadata)})
}

func (c *User) members() []member {
	return c.Head.members(1, label(KindUser),
		member{"content", (*contents)(&c.Content)})
}

func (c *Assistant) members() []member {
	return c.Head.members(1, label(KindAssistant),
		member{"content", (*contents)(&c.Content)},
		member{"model", (*text)(&c.Model)},
		member{"finish", (*text)(&c.Finish)},
		member{"usage", (*usage)(c)})
}

func (c *Supervisor) members() []member {
	return c.Head.members(1, label(KindSupervisor),
		member{"content", (*contents)(&c.Content)})
}

func (c *Document) members() []member {
	return c.Head.members(1, label(KindDocument),
		member{"title", (*text)(&c.Title)},
		member{"uri", (*text)(&c.URI)},
		member{"content", (*contents)(&c.Content)})
}

// nested returns the version that a canister with a parent is written in. A program of an
// older version would show it to a model.
func nested(parent string) version {
	if parent != "" {
		return 3
	}
	return 1
}

func (c *Invocation) members() []member {
	return c.Head.members(nested(c.Parent), label(KindInvocation),
		member{"message", (*text)(&c.Message)},
		member{"call_id", (*text)(&c.CallID)},
		member{"name", (*text)(&c.Name)},
		member{"arguments", (*text)(&c.Arguments)},
		member{"parent", (*text)(&c.Parent)})
}

func (c *Result) members() []member {
	return c.Head.members(nested(c.Parent), label(KindResult),
		member{"invocation", (*text)(&c.Invocation)},
		member{"parent", (*text)(&c.Parent)},
		member{"content", (*contents)(&c.Content)},
		member{"code", (*text)(&c.Code)},
		member{"retryable", (*flag)(&c.Retryable)})
}

func (c *Intent) members() []member {
	return c.Head.members(2, label(KindIntent),
		member{"invocation", (*text)(&c.Invocation)},
		member{"attempt", (*count)(&c.Attempt)},
		member{"key", (*text)(&c.Key)},
		member{"repeatable", (*flag)(&c.Repeatable)},
		member{"wait", (*text)(&c.Wait)},
		member{"arguments", (*text)(&c.Arguments)},
		member{"approved", (*instant)(&c.Approved)},
		member{"identity", (*text)(&c.Identity)},
		member{"fingerprint", (*text)(&c.Fingerprint)})
}

func (c *Wait) members() []member {
	return c.Head.members(2, label(KindWait),
		member{"for", (*text)(&c.For)},
		member{"invocation", (*text)(&c.Invocation)},
		member{"deadline", (*instant)(&c.Deadline)},
		member{"who", (*text)(&c.Who)},
		member{"conversation", (*text)(&c.Conversation)},
		member{"identity", (*text)(&c.Identity)},
		member{"fingerprint", (*text)(&c.Fingerprint)},
		member{"arguments", (*text)(&c.Arguments)},
		member{"question", (*raw)(&c.Question)})
}

func (c *Answer) members() []member {
	return c.Head.members(2, label(KindAnswer),
		member{"wait", (*text)(&c.Wait)},
		member{"verdict", (*text)(&c.Verdict)},
		member{"by", (*text)(&c.By)},
		member{"reason", (*text)(&c.Reason)},
		member{"arguments", (*raw)(&c.Arguments)},
		member{"content", (*contents)(&c.Content)})
}

func (u *Usage) members() []member {
	return []member{
		{"input", (*count)(&u.Input)},
		{"cached", (*count)(&u.Cached)},
		{"cache_written", (*count)(&u.CacheWritten)},
		{"output", (*count)(&u.Output)},
		{"reasoning", (*count)(&u.Reasoning)},
		{"context", (*count)(&u.Context)},
	}
}

// appendObject appends the members that are not absent, followed by the unknown
// ones, sorted by name.
func appendObject(dst []byte, members []member, unknown Fields) ([]byte, error) {
	dst = append(dst, '{')
	start := len(dst)
	var err error
	for _, m := range members {
		if m.value.absent() {
			continue
		}
		dst = appendName(dst, start, m.name)
		if dst, err = m.value.append(dst); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if len(unknown) == 0 {
		return append(dst, '}'), nil
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		if m := find(members, name); m >= 0 {
			if _, nests := members[m].value.(*usage); nests && !members[m].value.absent() {
				continue // already written inside the usage object
			}
			return nil, fmt.Errorf("unknown member %s has the name of a known one", clip(name))
		}
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("member name %s is not UTF-8", clip(name))
		}
		dst = appendName(dst, start, name)
		if dst, err = appendRaw(dst, unknown[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", clip(name), err)
		}
	}
	return append(dst, '}'), nil
}

// appendName appends the name of a member, preceded by a comma unless it is the
// first of its object; start is the index of the object's first member.
func appendName(dst []byte, start int, name string) []byte {
	if len(dst) > start {
		dst = append(dst, ',')
	}
	return append(appendQuoted(dst, name), ':')
}

// readObject reads each of raws into the member of that name, or into unknown if
// there is no such member.
func readObject(raws []rawMember, members []member, unknown *Fields) error {
	var seen uint64 // bit i: members[i] has been read
	for _, r := range raws {
		m := find(members, r.name)
		_, twice := (*unknown)[string(r.name)]
		if m >= 0 {
			twice = seen&(1<<m) != 0
			seen |= 1 << m
		}
		if twice {
			return fmt.Errorf("member %s occurs twice", clip(r.name))
		}
		if m < 0 {
			if err := unknown.add(string(r.name), r.raw); err != nil {
				return fmt.Errorf("%s: %w", clip(r.name), err)
			}
		} else if err := members[m].value.read(r.raw); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func find[T string | []byte](members []member, name T) int {
	for i := range members {
		if members[i].name == string(name) {
			return i
		}
	}
	return -1
}

// add stores a compact copy of raw under name.
func (f *Fields) add(name string, raw []byte) error {
	compact, err := appendRaw(make([]byte, 0, len(raw)), raw)
	if err != nil {
		return err
	}
	if *f == nil {
		*f = Fields{}
	}
	(*f)[name] = compact
	return nil
}
