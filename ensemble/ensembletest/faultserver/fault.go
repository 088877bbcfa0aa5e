// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"slices"
	"strings"
)

// Fault is the name of one way to misbehave. [Faults] describes them in full, with the
// fields of a [Rule] that they use, and the places and transports of each.
//
// Over either transport:
//
//	die                        end the process, or the server in this process
//	silence                    never answer
//	slow                       continue after Delay
//	answer-twice               send the same answer twice
//	answer-late                answer after the client cancelled
//	wrong-id                   answer with an id that was never used
//	junk                       text that is not a message, then continue
//	broken-json                an answer that is not JSON
//	half-then-die              half an answer, then die
//	half-then-silence          half an answer, then nothing
//	flood-stdout               megabytes of junk
//	endless-line               one line without an end
//	list-changed-storm         many notifications that the tools changed
//	progress-storm             many notifications of progress
//	log-storm                  many log messages
//	huge-schema                one more tool, with a schema of Size bytes
//	deep-schema                one more tool, with a schema of Count levels
//	many-tools                 Count more tools
//	endless-pages              each page of the list has a next one
//	cursor-loop                each page has the same next one
//	huge-result                a text of Size bytes
//	deep-result                structured content of Count levels
//	unknown-content            a content block of an unknown type
//	hanging-read               a resource whose reading never ends
//	vanished-resource          a resource that is listed but not found
//	huge-resource              a resource of Size bytes
//	resources-changed-storm    many notifications that the resources changed
//
// Of a process that communicates over stdio:
//
//	flood-stderr               megabytes on stderr
//	ignore-term                only SIGKILL ends the process
//	stop-reading               stop reading stdin
//	leave-child                a child process that keeps running
//	leave-child-holding-pipes  a child that also holds stdin, stdout and stderr
//
// Of a server that communicates over HTTP:
//
//	expire-session             404 for all sessions so far
//	drop-stream                cut TCP in the middle of an SSE event
//	unauthorized               401
//	forbidden                  403
//	not-found                  404, although the session is known
//	too-many-requests          429 with Retry-After
//	internal-error             500
//	unavailable                503
//	redirect-same-host         307 to a path that works
//	redirect-other-host        307 to another origin, which records requests
//	html                       200 and an HTML page
//	wrong-content-type         the right answer as text/plain
//	self-signed                TLS with a certificate that clients do not trust
type Fault string

// Place is the name of a moment in the life of a server when a fault may strike. Each
// such moment is an occasion.
//
//	start          before the server reads anything; over HTTP, before it answers anything
//	initialize     initialize was received, and is not yet answered
//	list           tools/list was received, and is not yet answered; pages after the
//	               first are not occasions
//	after-list     the answer to tools/list was sent
//	read           resources/read was received, and is not yet answered
//	before-effect  a call was received, and its effect has not happened
//	after-effect   the effect of a call has happened and is in the ledger, and the call is
//	               not yet answered
//	between-calls  the answer to a call was sent
type Place string

// transport is a way to communicate with the server.
type transport string

const (
	viaStdio transport = "stdio"
	viaHTTP  transport = "http"
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

// places returns the places for one transport.
func (i *Info) places(t transport) []Place {
	switch t {
	case viaStdio:
		return i.Stdio
	case viaHTTP:
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
func anywhere() []Place  { return append(connected(), "start") }
func connected() []Place { return append(asked(), "after-list", "between-calls") }
func asked() []Place     { return append(answering(), "before-effect") }
func answering() []Place { return []Place{"initialize", "list", "after-effect"} }

// join formats values for error messages.
func join[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}
