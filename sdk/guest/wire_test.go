package guest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// messages are what a module reads and writes.
func messages() []any {
	return []any{
		&abi.DescribeRequest{}, &abi.Description{}, &abi.OpenRequest{}, &abi.Opened{}, &abi.ListRequest{}, &abi.Listing{}, &abi.ExecRequest{}, &abi.Exited{},
		&abi.FileRequest{}, &abi.TreeRequest{}, &abi.NameRequest{}, &abi.ExtendRequest{}, &abi.Extended{}, &abi.Plain{}, &abi.Done{}, &abi.Error{},
		&abi.HTTPRequest{}, &abi.HTTPResponse{}, &abi.Message{}, &abi.StreamInfo{}, &abi.MACCall{}, &abi.MACResult{}, &abi.StateCall{}, &abi.StateResult{},
		&abi.FileCall{}, &abi.FileResult{},
	}
}

// The kit reads and writes what encoding/json does.
func TestMessagesAreThoseOfJSON(t *testing.T) {
	for _, m := range messages() {
		for _, full := range []bool{false, true} {
			name := fmt.Sprintf("%T full %v", m, full)
			if full {
				fill(reflect.ValueOf(m).Elem(), 1)
			}
			want, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := encode(m)
			if err != nil {
				t.Fatal(err)
			}
			theirs, ours := reflect.New(reflect.TypeOf(m).Elem()).Interface(), reflect.New(reflect.TypeOf(m).Elem()).Interface()
			if err := json.Unmarshal(got, theirs); err != nil {
				t.Errorf("%s: %s: %v", name, got, err)
			}
			if err := decode(want, ours); err != nil {
				t.Errorf("%s: %s: %v", name, want, err)
			}
			again, _ := json.Marshal(ours)
			back, _ := json.Marshal(theirs)
			if string(again) != string(want) || string(back) != string(want) {
				t.Errorf("%s:\nwant    %s\nread    %s\nwritten %s", name, want, again, back)
			}
		}
	}
	for _, bad := range []string{`{"cmd":{"args":"x"}}`, `{"cmd":{"id":7}}`, `{"cmd":{"stdin":1.5}}`, `{"cmd":{"stdout":1}}`, `{"abi":[1]}`, `{"cmd":{"dir":{"b64":1}}}`, `{"settings":[]}`, `[]`, `{`} {
		if err := decode([]byte(bad), &abi.ExecRequest{}); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// fill gives every field a value.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("a \"b\" é")
		if v.Type() == reflect.TypeFor[abi.Text]() {
			v.SetString("bytes \xff")
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1796040593)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, depth+1)
		v.SetMapIndex(reflect.ValueOf("k"), e)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(any("option")))
	}
}
