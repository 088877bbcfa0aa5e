// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	_ "embed"
	"net/http"
)

// OpenAPI describes the requests and responses of the handler, in OpenAPI 3.1 as JSON. The
// handler serves it at /api/openapi.json.
//
//go:embed openapi.json
var OpenAPI string

func (h *handler) describe(w http.ResponseWriter, _ *http.Request) error {
	writeBody(w, http.StatusOK, []byte(OpenAPI))
	return nil
}
