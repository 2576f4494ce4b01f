package modeltest

import "fmt"

type object = map[string]any

func (s Step) usage() Usage {
	if s.Usage == (Usage{}) {
		return Usage{Input: 100, Output: 20}
	}
	return s.Usage
}

func (s Step) finish() string {
	switch {
	case s.Finish != "":
		return s.Finish
	case s.TruncatedCall:
		return "length"
	case len(s.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// calls gives every call its id, and takes half of the last one's input if the
// step says so.
func (s Step) calls() []Call {
	all := append([]Call(nil), s.Calls...)
	for i := range all {
		if all[i].ID == "" {
			all[i].ID = fmt.Sprintf("call_%d", i+1)
		}
		if s.TruncatedCall && i == len(all)-1 {
			all[i].Input = all[i].Input[:len(all[i].Input)/2]
		}
	}
	return all
}

// openAI streams a step as chat completion chunks.
func openAI(out *stream, step Step) {
	chunk := func(delta object, finish any) {
		out.send("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, p := range pieces(step.Reasoning) {
		out.pause()
		chunk(object{"reasoning_content": p}, nil)
	}
	for _, p := range pieces(step.Text) {
		out.pause()
		chunk(object{"content": p}, nil)
	}
	for i, call := range step.calls() {
		chunk(object{"tool_calls": []object{{"index": i, "id": call.ID, "type": "function",
			"function": object{"name": call.Name, "arguments": ""}}}}, nil)
		for _, p := range pieces(call.Input) {
			out.pause()
			chunk(object{"tool_calls": []object{{"index": i, "function": object{"arguments": p}}}}, nil)
		}
	}
	if step.Hang {
		out.pause()
		out.pause()
	}
	if step.NoFinish {
		return
	}
	chunk(object{}, step.finish())
	u := step.usage()
	out.send("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
		"choices": []object{}, "usage": object{
			"prompt_tokens": u.Input + u.CacheRead, "completion_tokens": u.Output,
			"total_tokens":          u.Input + u.CacheRead + u.Output,
			"prompt_tokens_details": object{"cached_tokens": u.CacheRead}}})
	out.send("", "[DONE]")
}

// anthropic streams a step as message events.
func anthropic(out *stream, step Step) {
	u := step.usage()
	event := func(kind string, fields object) {
		fields["type"] = kind
		out.send(kind, fields)
	}
	event("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant",
		"model": "scripted", "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": u.Input, "output_tokens": 1,
			"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite}}})
	index := 0
	block := func(start object, key, kind string, text string, end object) {
		event("content_block_start", object{"index": index, "content_block": start})
		for _, p := range pieces(text) {
			out.pause()
			event("content_block_delta", object{"index": index, "delta": object{"type": kind, key: p}})
		}
		if end != nil {
			event("content_block_delta", object{"index": index, "delta": end})
		}
		event("content_block_stop", object{"index": index})
		index++
	}
	if step.Reasoning != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, "thinking", "thinking_delta", step.Reasoning,
			object{"type": "signature_delta", "signature": "c2lnbmVk"})
	}
	if step.Text != "" {
		block(object{"type": "text", "text": ""}, "text", "text_delta", step.Text, nil)
	}
	for _, call := range step.calls() {
		block(object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object{}},
			"partial_json", "input_json_delta", call.Input, nil)
	}
	if step.Hang {
		out.pause()
		out.pause()
	}
	if step.NoFinish {
		return
	}
	reason := step.finish()
	switch reason {
	case "stop":
		reason = "end_turn"
	case "tool_calls":
		reason = "tool_use"
	case "length":
		reason = "max_tokens"
	case "content_filter":
		reason = "refusal"
	}
	event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil},
		"usage": object{"output_tokens": u.Output}})
	event("message_stop", object{})
}
