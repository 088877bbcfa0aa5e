// SPDX-License-Identifier: Apache-2.0

package ensemble

// Away is an ensemble that could not be reached, and why.
type Away struct {
	Ensemble string
	Err      error
}
