package guest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// A module lives for one operation, in which every message is read or written
// once. What encoding/json learns of a type beforehand costs more than to walk over
// it, so messages go through plain maps.

// decode reads a message.
func decode(data []byte, into any) error {
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	return assign(reflect.ValueOf(into).Elem(), plain)
}

// encode writes a message.
func encode(message any) ([]byte, error) { return json.Marshal(plainOf(reflect.ValueOf(message))) }

var errForm = errors.New("the message is of another form")

func assign(to reflect.Value, v any) error {
	if v == nil {
		return nil
	}
	if to.Type() == reflect.TypeFor[abi.Text]() {
		text, err := textOf(v)
		to.SetString(text)
		return err
	}
	switch to.Kind() {
	case reflect.Interface:
		to.Set(reflect.ValueOf(v))
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return assign(to.Elem(), v)
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return errForm
		}
		to.SetString(s)
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return errForm
		}
		to.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, ok := v.(float64)
		if !ok || n != float64(int64(n)) {
			return errForm
		}
		to.SetInt(int64(n))
	case reflect.Slice, reflect.Array:
		list, ok := v.([]any)
		if !ok || to.Kind() == reflect.Array && len(list) != to.Len() {
			return errForm
		}
		if to.Kind() == reflect.Slice {
			to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		}
		for i, item := range list {
			if err := assign(to.Index(i), item); err != nil {
				return err
			}
		}
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			return errForm
		}
		to.Set(reflect.MakeMapWithSize(to.Type(), len(m)))
		for k, item := range m {
			e := reflect.New(to.Type().Elem()).Elem()
			if err := assign(e, item); err != nil {
				return err
			}
			to.SetMapIndex(reflect.ValueOf(k), e)
		}
	case reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			return errForm
		}
		for i := range to.NumField() {
			f := to.Type().Field(i)
			if f.Anonymous {
				if err := assign(to.Field(i), v); err != nil {
					return err
				}
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if err := assign(to.Field(i), m[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	default:
		return fmt.Errorf("%s: %w", to.Type(), errForm)
	}
	return nil
}

// textOf reads either form of a Text.
func textOf(v any) (string, error) {
	if m, ok := v.(map[string]any); ok {
		b64, ok := m["b64"].(string)
		if !ok {
			return "", errForm
		}
		raw, err := base64.StdEncoding.DecodeString(b64)
		return string(raw), err
	}
	s, ok := v.(string)
	if !ok {
		return "", errForm
	}
	return s, nil
}

// plainOf is a message as maps, lists and values that JSON has.
func plainOf(v reflect.Value) any {
	if text, ok := v.Interface().(abi.Text); ok {
		if s := strings.ToValidUTF8(string(text), ""); len(s) == len(text) {
			return s
		}
		return map[string]any{"b64": base64.StdEncoding.EncodeToString([]byte(text))}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plainOf(v.Elem())
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return nil
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plainOf(v.Index(i))
		}
		return list
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		m := make(map[string]any, v.Len())
		for _, k := range v.MapKeys() {
			m[k.String()] = plainOf(v.MapIndex(k))
		}
		return m
	case reflect.Struct:
		m := map[string]any{}
		fields(v, m)
		return m
	}
	return v.Interface()
}

func fields(v reflect.Value, m map[string]any) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			fields(v.Field(i), m)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := v.Field(i)
		if options != "" && empty(field) {
			continue
		}
		m[name] = plainOf(field)
	}
}

// empty reports whether a field may be left out. A table of nothing may too.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}
