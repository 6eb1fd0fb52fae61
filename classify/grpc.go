package classify

import (
	"fmt"
	"reflect"
)

// statusMethods are the method GRPCStatus() *status.Status of an error's type, and the method Code
// of its result, as functions of their receivers. They are looked up once a type: to call methods
// by their names takes three times as many allocations.
type statusMethods struct{ status, code reflect.Value }

// statusMethodsOf returns t's, or nil. The result's type cannot be named without importing gRPC, so
// it is recognized by its own method Code, which returns an unsigned number.
func statusMethodsOf(t reflect.Type) *statusMethods {
	m, ok := t.MethodByName("GRPCStatus")
	if !ok || m.Type.NumIn() != 1 || m.Type.NumOut() != 1 {
		return nil
	}
	code, ok := m.Type.Out(0).MethodByName("Code")
	if !ok || code.Type.NumOut() != 1 {
		return nil
	}
	in := 1 // the receiver
	if m.Type.Out(0).Kind() == reflect.Interface {
		in = 0
	}
	if code.Type.NumIn() != in || code.Type.Out(0).Kind() != reflect.Uint32 {
		return nil
	}
	return &statusMethods{m.Func, code.Func}
}

// codeOf returns the code of err's status.
func (m *statusMethods) codeOf(err error) uint64 {
	status := m.status.Call([]reflect.Value{reflect.ValueOf(err)})[0]
	if !m.code.IsValid() { // the status is an interface
		return status.MethodByName("Code").Call(nil)[0].Uint()
	}
	return m.code.Call([]reflect.Value{status})[0].Uint()
}

// ofGRPC decides by the code's name and number, as in gRPC's statuscodes.md.
func ofGRPC(code uint64) opinion {
	if code == 0 { // OK, also of a nil status
		return opinion{}
	}
	var name string
	if code < uint64(len(grpcCodes)) {
		name = grpcCodes[code]
	} else {
		name = CleanClass(fmt.Sprint("grpc.Code_", code))
	}
	switch code {
	case 1, 4, 8, 10, 14:
		return withVerdict(name, VerdictRetry)
	case 2, 13: // Unknown and Internal carry no meaning
		return opinion{class: name}
	}
	if code < uint64(len(grpcCodes)) {
		return withVerdict(name, VerdictTerminal)
	}
	return opinion{class: name}
}

var grpcCodes = [...]string{
	1:  "grpc.Canceled",
	2:  "grpc.Unknown",
	3:  "grpc.InvalidArgument",
	4:  "grpc.DeadlineExceeded",
	5:  "grpc.NotFound",
	6:  "grpc.AlreadyExists",
	7:  "grpc.PermissionDenied",
	8:  "grpc.ResourceExhausted",
	9:  "grpc.FailedPrecondition",
	10: "grpc.Aborted",
	11: "grpc.OutOfRange",
	12: "grpc.Unimplemented",
	13: "grpc.Internal",
	14: "grpc.Unavailable",
	15: "grpc.DataLoss",
	16: "grpc.Unauthenticated",
}
