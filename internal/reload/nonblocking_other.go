// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package reload

// nonblocking is not needed: folders have no pipes.
const nonblocking = 0
