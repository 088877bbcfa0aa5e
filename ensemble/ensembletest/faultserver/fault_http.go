// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"time"
)

// httpKinds returns the faults that exist only over HTTP.
func httpKinds() []kind {
	status := func(f Fault, about string, code int) kind {
		return kind{Info{f, about, nil, asked()}, func(o *occasion) bool { return o.refuse(code) }}
	}
	return []kind{
		{Info{"expire-session", "All existing sessions are forgotten: their requests, including this one, are answered with 404, and their streams end. initialize makes a new session.",
			nil, []Place{"list", "after-list", "before-effect", "after-effect", "between-calls"}}, expireSession},
		{Info{"drop-stream", "TCP is cut in the middle of an SSE event of the response; after a list or between calls, in the streams that clients keep open.",
			nil, connected()}, dropStream},
		status("unauthorized", "Status 401, with a WWW-Authenticate header.", http.StatusUnauthorized),
		status("forbidden", "Status 403.", http.StatusForbidden),
		status("not-found", "Status 404, although the session is known and stays known.", http.StatusNotFound),
		status("too-many-requests", "Status 429, with a Retry-After header of Delay (1s) in whole seconds, rounded up.", http.StatusTooManyRequests),
		status("internal-error", "Status 500.", http.StatusInternalServerError),
		status("unavailable", "Status 503, with a Retry-After header if there is a Delay.", http.StatusServiceUnavailable),
		{Info{"redirect-same-host", "Status 307 to another path of the same origin, where requests are served and not redirected again.",
			nil, asked()}, redirectSameHost},
		{Info{"redirect-other-host", "Status 307 to another origin; KindElsewhere in the ledger records the requests that follow it.",
			nil, asked()}, redirectOtherHost},
		{Info{"html", "Status 200 and an HTML page, like that of a proxy that requires a login.",
			nil, asked()}, html},
		{Info{"wrong-content-type", "The right answer, with the content type text/plain.",
			nil, answering()}, wrongContentType},
		{Info{"self-signed", "TLS with a certificate of an unknown authority. With this fault in its script the server always uses TLS, see Server.Roots, also when the fault does not occur.",
			nil, []Place{"start"}}, selfSigned},
	}
}

// responder is the link of a request over HTTP.
type responder interface {
	// respond answers with a response outside the protocol.
	respond(status int, header map[string]string, body writer) bool
}

func (o *occasion) respond(status int, header map[string]string, body writer) bool {
	return o.link.(responder).respond(status, header, body) // the script was checked: the transport is HTTP
}

func (o *occasion) refuse(status int) bool {
	header := map[string]string{"Content-Type": "text/plain; charset=utf-8"}
	switch status {
	case http.StatusUnauthorized:
		header["WWW-Authenticate"] = `Bearer error="invalid_token"`
	case http.StatusTooManyRequests:
		header["Retry-After"] = seconds(cmp.Or(o.rule.Delay, time.Second))
	case http.StatusServiceUnavailable:
		if o.rule.Delay > 0 {
			header["Retry-After"] = seconds(o.rule.Delay)
		}
	}
	return o.respond(status, header, text(http.StatusText(status)+"\n"))
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func expireSession(o *occasion) bool {
	o.server.expire()
	if o.request == nil {
		return true
	}
	return o.refuse(http.StatusNotFound)
}

func dropStream(o *occasion) bool {
	_ = o.link.raw(text("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/me"))
	o.link.cut()
	return false
}

// movedPath is the target of redirects on the same host.
const movedPath = "/moved/mcp"

func redirectSameHost(o *occasion) bool {
	return o.respond(http.StatusTemporaryRedirect, map[string]string{"Location": movedPath}, nil)
}

func redirectOtherHost(o *occasion) bool {
	return o.respond(http.StatusTemporaryRedirect, map[string]string{"Location": o.server.elsewhere}, nil)
}

func html(o *occasion) bool {
	return o.respond(http.StatusOK, map[string]string{"Content-Type": "text/html; charset=utf-8"},
		text("<!DOCTYPE html>\n<title>Log in</title>\n<p>Please log in to use this network.</p>\n"))
}

func wrongContentType(o *occasion) bool {
	return o.respond(http.StatusOK, map[string]string{"Content-Type": "text/plain"}, func(w io.Writer) error { return o.answer.write(w) })
}

func selfSigned(o *occasion) bool {
	o.server.set(&o.server.mistrusted)
	return true
}
