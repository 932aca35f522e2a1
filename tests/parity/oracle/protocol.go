package main

// The shape of a case and of its answer.

import (
	"encoding/json"
	"fmt"
	"sort"
)

type caseInput struct {
	id      json.RawMessage
	objects []json.RawMessage
	pods    []json.RawMessage
	config  json.RawMessage
	commit  bool
	preempt string
}

type caseOutput struct {
	ID       json.RawMessage `json:"id"`
	Results  []*podResult    `json:"results,omitzero"`
	Warnings []string        `json:"warnings,omitempty"`
	Error    string          `json:"error,omitempty"`
}

type rejection struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
	Code    string   `json:"code"`
}

type podResult struct {
	Pod        string                      `json:"pod"`
	Feasible   []string                    `json:"feasible"`
	Filtered   map[string]rejection        `json:"filtered"`
	PreEnqueue *rejection                  `json:"preenqueue,omitempty"`
	PreFilter  *rejection                  `json:"prefilter"`
	Scores     map[string]map[string]int64 `json:"scores"`
	Best       []string                    `json:"best"`
	Chosen     *string                     `json:"chosen"`
	ViaNomi    bool                        `json:"nominatedNodeFits,omitempty"`
	Reserve    *rejection                  `json:"reserve,omitempty"`
	Message    string                      `json:"message"`
	Preemption *preemptionResult           `json:"preemption"`
	Retry      *podResult                  `json:"retry,omitempty"`
	Error      string                      `json:"error,omitempty"`
}

type preemptionResult struct {
	Node          string              `json:"node"`
	Victims       []string            `json:"victims"`
	PDBViolations int64               `json:"pdbViolations"`
	Ties          []string            `json:"ties,omitempty"`
	Candidates    map[string][]string `json:"candidates"`
}

const (
	preemptNominate = "nominate"
	preemptEvict    = "evict"
	preemptNone     = "none"
)

func parseCase(raw []byte) (*caseInput, []string, error) {
	in := &caseInput{commit: true, preempt: preemptNominate}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return in, nil, fmt.Errorf("not a JSON object: %w", err)
	}
	in.id = fields["id"]
	var warnings []string
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		value := fields[name]
		if string(value) == "null" {
			continue
		}
		var err error
		switch name {
		case "id":
		case "objects":
			err = json.Unmarshal(value, &in.objects)
		case "pods":
			err = json.Unmarshal(value, &in.pods)
		case "config":
			in.config = value
		case "commit":
			err = json.Unmarshal(value, &in.commit)
		case "preempt":
			err = json.Unmarshal(value, &in.preempt)
			if err == nil && in.preempt != preemptNominate && in.preempt != preemptEvict && in.preempt != preemptNone {
				err = fmt.Errorf("must be one of nominate, evict, none")
			}
		default:
			warnings = append(warnings, fmt.Sprintf("unknown key %q ignored", name))
		}
		if err != nil {
			return in, warnings, fmt.Errorf("%s: %w", name, err)
		}
	}
	return in, warnings, nil
}
