// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"slices"
	"strings"
)

// Fault is one way to misbehave. [Faults] lists the places and transports of each.
type Fault string

// The faults of servers over either transport. [Faults] describes them in full, with
// the fields of a [Rule] that they use.
const (
	Die             Fault = "die"               // end the process, or the server in this process
	Silence         Fault = "silence"           // never answer
	Slow            Fault = "slow"              // continue after Delay
	AnswerTwice     Fault = "answer-twice"      // send the same answer twice
	AnswerLate      Fault = "answer-late"       // answer after the client cancelled
	WrongID         Fault = "wrong-id"          // answer with an id that was never used
	Junk            Fault = "junk"              // text that is not a message, then continue
	BrokenJSON      Fault = "broken-json"       // an answer that is not JSON
	HalfThenDie     Fault = "half-then-die"     // half an answer, then Die
	HalfThenSilence Fault = "half-then-silence" // half an answer, then nothing
	FloodStdout     Fault = "flood-stdout"      // megabytes of Junk
	EndlessLine     Fault = "endless-line"      // one line without an end

	ListChangedStorm Fault = "list-changed-storm" // many notifications that the tools changed
	ProgressStorm    Fault = "progress-storm"     // many notifications of progress
	LogStorm         Fault = "log-storm"          // many log messages

	HugeSchema     Fault = "huge-schema"     // one more tool, with a schema of Size bytes
	DeepSchema     Fault = "deep-schema"     // one more tool, with a schema of Count levels
	ManyTools      Fault = "many-tools"      // Count more tools
	EndlessPages   Fault = "endless-pages"   // each page of the list has a next one
	CursorLoop     Fault = "cursor-loop"     // each page has the same next one
	HugeResult     Fault = "huge-result"     // a text of Size bytes
	DeepResult     Fault = "deep-result"     // structured content of Count levels
	UnknownContent Fault = "unknown-content" // a content block of an unknown type

	HangingRead           Fault = "hanging-read"            // a resource whose reading never ends
	VanishedResource      Fault = "vanished-resource"       // a resource that is listed but not found
	HugeResource          Fault = "huge-resource"           // a resource of Size bytes
	ResourcesChangedStorm Fault = "resources-changed-storm" // many notifications that the resources changed
)

// The faults of a process that communicates over stdio.
const (
	FloodStderr            Fault = "flood-stderr"              // megabytes on stderr
	IgnoreTerm             Fault = "ignore-term"               // only SIGKILL ends the process
	StopReading            Fault = "stop-reading"              // stop reading stdin
	LeaveChild             Fault = "leave-child"               // a child process that keeps running
	LeaveChildHoldingPipes Fault = "leave-child-holding-pipes" // a child that also holds stdin, stdout and stderr
)

// The faults of a server that communicates over HTTP.
const (
	ExpireSession     Fault = "expire-session"      // 404 for all sessions so far
	DropStream        Fault = "drop-stream"         // cut TCP in the middle of an SSE event
	Unauthorized      Fault = "unauthorized"        // 401
	Forbidden         Fault = "forbidden"           // 403
	NotFound          Fault = "not-found"           // 404, although the session is known
	TooManyRequests   Fault = "too-many-requests"   // 429 with Retry-After
	InternalError     Fault = "internal-error"      // 500
	Unavailable       Fault = "unavailable"         // 503
	RedirectSameHost  Fault = "redirect-same-host"  // 307 to a path that works
	RedirectOtherHost Fault = "redirect-other-host" // 307 to another origin, which records requests
	HTML              Fault = "html"                // 200 and an HTML page
	WrongContentType  Fault = "wrong-content-type"  // the right answer as text/plain
	SelfSigned        Fault = "self-signed"         // TLS with a certificate that clients do not trust
)

// Place is a moment in the life of a server when a fault may strike. Each such moment
// is an occasion.
type Place string

// The places.
const (
	// AtStart: before the server reads anything. Over HTTP, before it answers anything.
	AtStart Place = "start"
	// AtInitialize: initialize was received, and is not yet answered.
	AtInitialize Place = "initialize"
	// AtList: tools/list was received, and is not yet answered. Pages after the first
	// are not occasions.
	AtList Place = "list"
	// AfterList: the answer to tools/list was sent.
	AfterList Place = "after-list"
	// AtRead: resources/read was received, and is not yet answered.
	AtRead Place = "read"
	// BeforeEffect: a call was received, and its effect has not happened.
	BeforeEffect Place = "before-effect"
	// AfterEffect: the effect of a call has happened and is in the ledger, and the call
	// is not yet answered.
	AfterEffect Place = "after-effect"
	// BetweenCalls: the answer to a call was sent.
	BetweenCalls Place = "between-calls"
)

// Transport is a way to communicate with the server.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
)

// Info describes a fault.
type Info struct {
	Fault Fault
	// About describes the behavior of the server, and the fields of a Rule that it
	// uses.
	About string
	// Stdio and HTTP are the places where the fault can strike over each transport; nil
	// means that the transport does not support it.
	Stdio, HTTP []Place
}

// Places returns the places for one transport.
func (i *Info) Places(t Transport) []Place {
	switch t {
	case Stdio:
		return i.Stdio
	case HTTP:
		return i.HTTP
	default:
		return nil
	}
}

// kind is a fault with its implementation.
type kind struct {
	Info
	// strike performs the fault. It reports whether the server continues with what it
	// was about to do; if not, the current request gets no further answer.
	strike func(o *occasion) bool
}

// Faults returns all faults, in a fixed order. The caller may modify the result.
func Faults() []Info {
	all := kinds()
	infos := make([]Info, len(all))
	for i, k := range all {
		infos[i] = k.Info
	}
	return infos
}

func findKind(f Fault) (kind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.Fault == f })
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

func kinds() []kind {
	return slices.Concat(processKinds(), answerKinds(), streamKinds(), listKinds(), resultKinds(), resourceKinds(), httpKinds())
}

// The functions below return sets of places: all; all with a client; the places where a
// request waits for its answer; and the places where the answer is ready to be sent.
func anywhere() []Place  { return append(connected(), AtStart) }
func connected() []Place { return append(asked(), AfterList, BetweenCalls) }
func asked() []Place     { return append(answering(), BeforeEffect) }
func answering() []Place { return []Place{AtInitialize, AtList, AfterEffect} }

// join formats values for error messages.
func join[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}
