// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"slices"
	"strings"
)

// Fault is one way to misbehave. [Faults] tells of each at which places and
// over which transports it can strike.
type Fault string

// The faults of any server. What they do in full is in the table of [Faults],
// and so are the fields of a [Rule] that they read.
const (
	Die             Fault = "die"               // end the process, or go off the air
	Silence         Fault = "silence"           // never answer
	Slow            Fault = "slow"              // go on after Delay
	AnswerTwice     Fault = "answer-twice"      // the same answer two times
	AnswerLate      Fault = "answer-late"       // answer after the client cancelled
	WrongID         Fault = "wrong-id"          // answer a question that nobody asked
	Junk            Fault = "junk"              // text that is no message, then go on
	BrokenJSON      Fault = "broken-json"       // an answer that is no JSON
	HalfThenDie     Fault = "half-then-die"     // half an answer, then Die
	HalfThenSilence Fault = "half-then-silence" // half an answer, then nothing
	FloodStdout     Fault = "flood-stdout"      // megabytes of Junk
	EndlessLine     Fault = "endless-line"      // one line that does not end

	ListChangedStorm Fault = "list-changed-storm" // many notifications that the tools changed
	ProgressStorm    Fault = "progress-storm"     // many notifications of progress
	LogStorm         Fault = "log-storm"          // many log messages

	HugeSchema     Fault = "huge-schema"     // one tool more, with a schema of Size bytes
	DeepSchema     Fault = "deep-schema"     // one tool more, with a schema of Count levels
	ManyTools      Fault = "many-tools"      // Count tools more
	EndlessPages   Fault = "endless-pages"   // each page of the list names a next one
	CursorLoop     Fault = "cursor-loop"     // each page names the same next one
	HugeResult     Fault = "huge-result"     // a text of Size bytes
	DeepResult     Fault = "deep-result"     // structured content of Count levels
	UnknownContent Fault = "unknown-content" // a block of content of no known type

	HangingRead           Fault = "hanging-read"            // a resource that is never read to its end
	VanishedResource      Fault = "vanished-resource"       // one that is listed and not there
	HugeResource          Fault = "huge-resource"           // one of Size bytes
	ResourcesChangedStorm Fault = "resources-changed-storm" // many notifications that the resources changed
)

// The faults of a process that talks over stdio.
const (
	FloodStderr            Fault = "flood-stderr"              // megabytes on stderr
	IgnoreTerm             Fault = "ignore-term"               // SIGKILL alone ends the process
	StopReading            Fault = "stop-reading"              // read no more of stdin
	LeaveChild             Fault = "leave-child"               // a child process that stays
	LeaveChildHoldingPipes Fault = "leave-child-holding-pipes" // one that also holds stdin, stdout and stderr
)

// The faults of a server that talks over HTTP.
const (
	ExpireSession     Fault = "expire-session"      // 404 for each session so far
	DropStream        Fault = "drop-stream"         // cut TCP in the middle of an SSE event
	Unauthorized      Fault = "unauthorized"        // 401
	Forbidden         Fault = "forbidden"           // 403
	NotFound          Fault = "not-found"           // 404, though the session is known
	TooManyRequests   Fault = "too-many-requests"   // 429 with Retry-After
	InternalError     Fault = "internal-error"      // 500
	Unavailable       Fault = "unavailable"         // 503
	RedirectSameHost  Fault = "redirect-same-host"  // 307 to a path that serves
	RedirectOtherHost Fault = "redirect-other-host" // 307 to another origin, which takes notes
	HTML              Fault = "html"                // 200 and a page for people
	WrongContentType  Fault = "wrong-content-type"  // the right answer as text/plain
	SelfSigned        Fault = "self-signed"         // TLS with a certificate that nobody vouches for
)

// Place is a moment in the life of a server at which a fault may strike. Each
// time that the moment comes is an occasion.
type Place string

// The places.
const (
	// AtStart: before anything is read. Over HTTP, before anything is answered.
	AtStart Place = "start"
	// AtInitialize: initialize was asked, and not yet answered.
	AtInitialize Place = "initialize"
	// AtList: tools/list was asked, and not yet answered. Pages after the
	// first are no occasions.
	AtList Place = "list"
	// AfterList: tools/list was answered, and the answer has left.
	AfterList Place = "after-list"
	// AtRead: resources/read was asked, and not yet answered.
	AtRead Place = "read"
	// BeforeEffect: a call came, and its effect has not happened.
	BeforeEffect Place = "before-effect"
	// AfterEffect: the effect of a call has happened and stands in the ledger,
	// and the call is not yet answered.
	AfterEffect Place = "after-effect"
	// BetweenCalls: a call was answered, and the answer has left.
	BetweenCalls Place = "between-calls"
)

// Transport is a way to talk to the server.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
)

// Info is what there is to know about a fault.
type Info struct {
	Fault Fault
	// About says what the server does, and which fields of a Rule it reads.
	About string
	// Stdio and HTTP are the places at which it can strike over either
	// transport; nil means that the transport does not have it.
	Stdio, HTTP []Place
}

// Places returns those of one transport.
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

// kind is a fault and how it strikes.
type kind struct {
	Info
	// strike does it. It reports whether the server goes on with what it was
	// about to do; if not, the request at hand gets no more of an answer.
	strike func(o *occasion) bool
}

// Faults returns all faults, in a fixed order. The caller may change what it
// gets.
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

// Sets of places: all; all with a client; those at which a request waits for
// its answer; and those at which the answer is ready to go.
func anywhere() []Place  { return append(connected(), AtStart) }
func connected() []Place { return append(asked(), AfterList, BetweenCalls) }
func asked() []Place     { return append(answering(), BeforeEffect) }
func answering() []Place { return []Place{AtInitialize, AtList, AfterEffect} }

// join renders values for a person.
func join[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}
