// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import "slices"

// Fault is the name of one way to misbehave. [Faults] describes them in full, with the
// fields of a [Rule] that they read and the places where they can occur.
//
//	silence            never respond
//	slow               continue after Delay
//	drip               send byte by byte
//	cut                reset the TCP connection
//	die                stop the server
//	half               half a response, then cut
//	half-then-silence  half a response, then nothing
//	junk               bytes that are not HTTP/2
//	bad-gateway        a proxy's 502 with an HTML page
//	html               200 and an HTML page
//	status             a gRPC status instead of a response
//	reset              RST_STREAM instead of a response
//	goaway             drain the connection, and continue
//	goaway-unseen      drain it, and say that the request was not processed
//	huge-headers       a response with large metadata
//	huge-result        a large response
//	bomb               a large response that is small when compressed
//	broken-message     a response that is not a valid protobuf message
//	many-tools         Count additional tools
//	odd-tools          unusable tools in addition to the valid ones
//	expired            an expired certificate
//	other-name         a certificate for another host
//	self-signed        a self-signed certificate
type Fault string

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
func asked() []Place     { return []Place{"list", "before-effect", "after-effect"} }
func answering() []Place { return []Place{"list", "after-effect"} }
func anywhere() []Place  { return append([]Place{"connect"}, asked()...) }
