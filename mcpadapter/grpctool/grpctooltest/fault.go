// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import "slices"

// Fault is one way to misbehave. [Faults] describes the effect of each and where it can
// occur.
type Fault string

// The faults. [Faults] describes their effects in full, and the fields of a [Rule] that
// they read.
const (
	Silence         Fault = "silence"           // never respond
	Slow            Fault = "slow"              // continue after Delay
	Drip            Fault = "drip"              // send byte by byte
	Cut             Fault = "cut"               // reset the TCP connection
	Die             Fault = "die"               // stop the server
	Half            Fault = "half"              // half a response, then Cut
	HalfThenSilence Fault = "half-then-silence" // half a response, then nothing

	Junk       Fault = "junk"        // bytes that are not HTTP/2
	BadGateway Fault = "bad-gateway" // a proxy's 502 with an HTML page
	HTML       Fault = "html"        // 200 and an HTML page

	Status       Fault = "status"         // a gRPC status instead of a response
	Reset        Fault = "reset"          // RST_STREAM instead of a response
	GoAway       Fault = "goaway"         // drain the connection, and continue
	GoAwayUnseen Fault = "goaway-unseen"  // drain it, and say that the request was not processed
	HugeHeaders  Fault = "huge-headers"   // a response with large metadata
	HugeResult   Fault = "huge-result"    // a large response
	Bomb         Fault = "bomb"           // a large response that is small when compressed
	BrokenBytes  Fault = "broken-message" // a response that is not a valid protobuf message
	ManyTools    Fault = "many-tools"     // Count additional tools
	OddTools     Fault = "odd-tools"      // unusable tools in addition to the valid ones

	Expired    Fault = "expired"     // an expired certificate
	OtherName  Fault = "other-name"  // a certificate for another host
	SelfSigned Fault = "self-signed" // a self-signed certificate
)

// Info describes a fault.
type Info struct {
	Fault Fault
	// About says what the server does, and which fields of a Rule it reads.
	About string
	// Places are the places where it can occur.
	Places []Place
}

// kind is the implementation of a fault.
type kind struct {
	Info
	tls bool // it needs a server with TLS
	// connect applies the fault at AtConnect, and reports whether the connection is
	// served.
	connect func(*wire, Rule) bool
	// request applies the fault at the other places, and reports whether the request
	// continues. If not, it ends with the error.
	request func(*request, Rule) (bool, error)
}

// Faults returns all faults, in a fixed order. The caller may modify the returned
// slice.
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

// Sets of places: places before the response of a request is sent, and places where the
// response is ready to be sent.
func asked() []Place     { return []Place{AtList, BeforeEffect, AfterEffect} }
func answering() []Place { return []Place{AtList, AfterEffect} }
func anywhere() []Place  { return append([]Place{AtConnect}, asked()...) }
