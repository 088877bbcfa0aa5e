// SPDX-License-Identifier: Apache-2.0

// Package modelapi is what the models behind HTTP APIs share: attempts whose retries are
// events, time limits, limits of size, errors in the form of [converse.ModelError], request
// bodies that only grow, and the parts of messages.
package modelapi

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/consort-go/consort/internal/redact"
)

// Server is the server of a model, with the limits of its exchanges. It must not change
// once it is in use; its methods may be called concurrently.
type Server struct {
	// Package is the name of the model's package. It begins the errors that do not come
	// from the server.
	Package string
	// Base is the URL of the API. Data of its host is sent to no other host.
	Base *url.URL
	// API is chat, responses or messages, and Model the name of the model.
	API, Model string
	// Options points to the Options of the package, which errors advise to change, and
	// Place says where they are set; nil names the fields.
	Options any
	Place   Place
	// KeyVariable is the variable that has the key; empty if the key is an option.
	KeyVariable string
	// Members has the changes that leave a member out of a request, by its name.
	Members map[string]Change
	// Redact removes the secrets of the model from a text.
	Redact func(text string) string

	// MaxRetries is how often a failed attempt is repeated.
	MaxRetries int
	// ResponseTimeout limits the wait for the header of a response, and IdleTimeout the
	// wait for more of its body. For signsOfLife times IdleTimeout the server may send
	// nothing but signs of life. A limit that is not positive means no limit.
	ResponseTimeout, IdleTimeout time.Duration
	// MaxEventBytes limits one event of a stream, and MaxAnswerBytes a whole response.
	MaxEventBytes, MaxAnswerBytes int
	// TraceHeaders sends the trace context with each request.
	TraceHeaders bool
}

// WithDefaults sets the limits that are zero to their defaults, and returns the server. A
// negative MaxRetries becomes zero: no attempt is repeated.
func (s *Server) WithDefaults() *Server {
	s.MaxRetries = max(cmp.Or(s.MaxRetries, 2), 0)
	s.ResponseTimeout = cmp.Or(s.ResponseTimeout, 10*time.Minute)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, 5*time.Minute)
	s.MaxEventBytes = cmp.Or(s.MaxEventBytes, 8<<20)
	s.MaxAnswerBytes = cmp.Or(s.MaxAnswerBytes, 64<<20)
	return s
}

// ParseBase parses the base URL of an API. Its errors do not quote the URL, which can
// contain secrets.
func ParseBase(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("BaseURL cannot be parsed as a URL")
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, errors.New("BaseURL must begin with http:// or https:// and name a host, such as http://localhost:8080/v1")
	}
	if base.User != nil || base.Fragment != "" {
		return nil, errors.New("BaseURL must not hold a user, a password or a fragment; use APIKey or Headers")
	}
	return base, nil
}

// Redactor returns a function that removes secrets from a text: the given ones, the values
// of headers, and the values in the query of base. A server can repeat a key in an error.
func Redactor(base *url.URL, headers map[string]string, secrets ...string) func(text string) string {
	secrets = append(slices.Collect(maps.Values(headers)), secrets...)
	for _, values := range base.Query() {
		secrets = append(secrets, values...)
	}
	return redact.Sent(secrets...)
}

// Client returns a client that follows redirects only within the origin of a request. It
// is a copy of given, or, if given is nil, has a transport of its own, which is returned
// too.
func Client(given *http.Client) (client *http.Client, own *http.Transport) {
	client = new(http.Client)
	if given != nil {
		*client = *given
	} else if transport, ok := http.DefaultTransport.(*http.Transport); ok {
		own = transport.Clone()
		// With the default of two idle connections, kept for a minute and a half,
		// concurrent conversations would open a connection for each exchange.
		own.MaxIdleConns, own.MaxIdleConnsPerHost = 0, 1000
		own.ReadBufferSize, own.WriteBufferSize = 2<<10, 1<<10
		if own.DialContext != nil { // the program may have replaced the default
			own.DialContext = shareBuffers(own.DialContext)
		}
		client.Transport = own
	}
	check := client.CheckRedirect
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		from := via[0].URL
		if len(via) > 5 || next.URL.Scheme != from.Scheme || next.URL.Host != from.Host {
			return http.ErrUseLastResponse
		}
		if check != nil {
			return check(next, via)
		}
		return nil
	}
	return client, own
}
