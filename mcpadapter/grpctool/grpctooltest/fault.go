// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import "slices"

// Fault is one way to misbehave. [Faults] tells of each what it does and where
// it can strike.
type Fault string

// The faults. What they do in full is in the table of [Faults], and so are the
// fields of a [Rule] that they read.
const (
	Silence         Fault = "silence"           // say nothing, for ever
	Slow            Fault = "slow"              // go on after Delay
	Drip            Fault = "drip"              // byte by byte
	Cut             Fault = "cut"               // reset the TCP connection
	Die             Fault = "die"               // go off the air
	Half            Fault = "half"              // half an answer, then Cut
	HalfThenSilence Fault = "half-then-silence" // half an answer, then nothing

	Junk       Fault = "junk"        // bytes that are no HTTP/2
	BadGateway Fault = "bad-gateway" // a proxy's 502 with a page for people
	HTML       Fault = "html"        // 200 and a page for people

	Status       Fault = "status"         // a status of gRPC in place of an answer
	Reset        Fault = "reset"          // RST_STREAM in place of an answer
	GoAway       Fault = "goaway"         // wind the connection up, and go on
	GoAwayUnseen Fault = "goaway-unseen"  // wind it up, and say that the request was not looked at
	HugeHeaders  Fault = "huge-headers"   // an answer with large metadata
	HugeResult   Fault = "huge-result"    // a large answer
	Bomb         Fault = "bomb"           // a large answer that is small on the wire
	BrokenBytes  Fault = "broken-message" // an answer that is no message of protobuf
	ManyTools    Fault = "many-tools"     // Count tools more
	OddTools     Fault = "odd-tools"      // tools that nobody can use beside those that are good

	Expired    Fault = "expired"     // a certificate of yesterday
	OtherName  Fault = "other-name"  // a certificate for another host
	SelfSigned Fault = "self-signed" // a certificate that nobody vouches for
)

// Info is what there is to know about a fault.
type Info struct {
	Fault Fault
	// About says what the server does, and which fields of a Rule it reads.
	About string
	// Places are those at which it can strike.
	Places []Place
}

// kind is a fault and how it strikes.
type kind struct {
	Info
	tls bool // it needs a server with TLS
	// connect strikes at AtConnect, and reports whether the connection is
	// served.
	connect func(*wire, Rule) bool
	// request strikes at the other places, and reports whether the request
	// goes on. If not, it ends with the error.
	request func(*request, Rule) (bool, error)
}

// Faults returns all faults, in a fixed order. The caller may change what it
// gets.
func Faults() []Info {
	var infos []Info
	for _, k := range kinds() {
		infos = append(infos, k.Info)
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
	return slices.Concat(connectionKinds(), byteKinds(), answerKinds(), streamKinds(), certificateKinds())
}

// Sets of places: those at which a request waits for its answer, and those at
// which the answer is ready to go.
func asked() []Place     { return []Place{AtList, BeforeEffect, AfterEffect} }
func answering() []Place { return []Place{AtList, AfterEffect} }
func anywhere() []Place  { return append([]Place{AtConnect}, asked()...) }
