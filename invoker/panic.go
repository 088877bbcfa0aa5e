// SPDX-License-Identifier: Apache-2.0

package invoker

import "github.com/consort-go/consort/internal/contain"

// Panic is the cause of the failure of a tool whose function panicked. It is for
// logs.
type Panic struct {
	// Value is the argument of the panic; nil if the function called
	// [runtime.Goexit] instead. An error whose methods panic is replaced by an
	// error with its text.
	Value any
	// Stack is the stack of the goroutine at the panic, at most 64 KiB.
	Stack []byte
}

// Error returns the text of the value, without the stack.
func (p *Panic) Error() string {
	if p.Value == nil {
		return "the function called runtime.Goexit"
	}
	return "panic: " + contain.Text(p.Value)
}

// Unwrap returns Value if it is an error, such as a [runtime.Error].
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// apart runs a function in its own goroutine and waits for it, so that neither a
// panic nor the end of the goroutine reaches the caller.
func apart(run func() (Output, error)) (output Output, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		catch(run, &output, &err)
	}()
	<-done
	return output, err
}

// inline runs a function in the caller's goroutine and recovers its panics.
func inline(run func() (Output, error)) (output Output, err error) {
	catch(run, &output, &err)
	return output, err
}

// catch runs a function and stores its results, or a failure if it did not
// return.
func catch(run func() (Output, error), output *Output, err *error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		*output, *err = Output{}, panicked(panicOf(recover()))
	}()
	*output, *err = run()
	*err = usable(*err)
	returned = true
}

// panicOf returns the cause for a value that recover returned.
func panicOf(value any) *Panic {
	p := contain.Recovered("the tool", value)
	return &Panic{Value: p.Value, Stack: p.Stack}
}

// usable returns err, or a failure for it if one of its methods panics, which is
// common for a nil pointer returned as an error.
func usable(err error) error {
	if contain.Usable(err) {
		return err
	}
	return AsFailure(err)
}

func panicked(cause *Panic) *Failure {
	message := "The tool panicked, and may or may not have taken effect. The reason is in the log of the program that runs it."
	if cause.Value == nil {
		message = "The tool ended without a result. It may or may not have taken effect."
	}
	return &Failure{Code: Internal, Message: message, Cause: cause}
}
