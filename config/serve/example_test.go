// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"

	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
)

// A program decides whether its options may be used at an address.
func Example() {
	options := &serve.Options{HTTP: values.Plain("0.0.0.0:8080")}
	fmt.Println(options.MayListen("127.0.0.1:8080"))
	fmt.Println(options.MayListen("0.0.0.0:8080"))

	options.Clients = []serve.Client{{Name: "ada", Token: values.Hidden("3f8c0a5b9d1e7264"), Deny: []string{"database"}}}
	fmt.Println(options.MayListen("0.0.0.0:8080"))
	// Output:
	// <nil>
	// without a token, anyone who can reach this address can call the tools: set token, clients or oidc, listen at 127.0.0.1 only, or allow it with open = true
	// <nil>
}
