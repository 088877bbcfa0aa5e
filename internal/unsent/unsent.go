// SPDX-License-Identifier: Apache-2.0

// Package unsent has a response that is not sent.
package unsent

import "net/http"

// Response is an [http.ResponseWriter] that keeps only the header. It is not safe for concurrent use.
type Response http.Header

// Header implements [http.ResponseWriter].
func (r Response) Header() http.Header { return http.Header(r) }

// Write implements [http.ResponseWriter].
func (Response) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements [http.ResponseWriter].
func (Response) WriteHeader(int) {}
