// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"github.com/consort-go/consort/converse/internal/redaction"
	"github.com/consort-go/consort/ensemble"
)

// redactError redacts an error. A [*ModelError] stays one, because programs inspect it.
func redactError(clean redaction.Func, err error) error {
	failed, ok := err.(*ModelError)
	if !ok || failed == nil || clean == nil {
		return clean.Error(err)
	}
	cleaned := *failed
	cleaned.Message, cleaned.Code, cleaned.RequestID = clean(failed.Message), clean(failed.Code), clean(failed.RequestID)
	cleaned.Advice = clean(failed.Advice)
	cleaned.Err = clean.Error(failed.Err)
	return &cleaned
}

// redactAway redacts the errors of absent ensembles, and changes the slice.
func redactAway(clean redaction.Func, all []ensemble.Away) []ensemble.Away {
	for i := range all {
		all[i].Err = redactError(clean, all[i].Err)
	}
	return all
}
