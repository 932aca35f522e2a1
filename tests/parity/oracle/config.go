package main

// The scheduler's configuration of a case.

import (
	"encoding/json"
	"fmt"
	"sync"

	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedvalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/yaml"
)

var defaultConfig = sync.OnceValues(latest.Default)

func loadConfig(raw json.RawMessage) (*schedconfig.KubeSchedulerConfiguration, error) {
	var cfg *schedconfig.KubeSchedulerConfiguration
	if len(raw) == 0 {
		def, err := defaultConfig()
		if err != nil {
			return nil, err
		}
		cfg = def.DeepCopy()
	} else {
		data := []byte(raw)
		var text string
		if json.Unmarshal(raw, &text) == nil {
			data = []byte(text)
		}
		var fields map[string]any
		if err := yaml.Unmarshal(data, &fields); err != nil {
			return nil, err
		}
		if fields == nil {
			fields = map[string]any{}
		}
		if _, ok := fields["apiVersion"]; !ok {
			fields["apiVersion"] = "kubescheduler.config.k8s.io/v1"
		}
		if _, ok := fields["kind"]; !ok {
			fields["kind"] = "KubeSchedulerConfiguration"
		}
		data, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		obj, gvk, err := schedscheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		var ok bool
		if cfg, ok = obj.(*schedconfig.KubeSchedulerConfiguration); !ok {
			return nil, fmt.Errorf("not a KubeSchedulerConfiguration but %s", gvk)
		}
		cfg.TypeMeta.APIVersion = gvk.GroupVersion().String()
		if errs := schedvalidation.ValidateKubeSchedulerConfiguration(cfg); errs != nil && len(errs.Errors()) > 0 {
			return nil, errs
		}
	}
	every := int32(100)
	cfg.PercentageOfNodesToScore = &every
	for i := range cfg.Profiles {
		cfg.Profiles[i].PercentageOfNodesToScore = nil
	}
	return cfg, nil
}
