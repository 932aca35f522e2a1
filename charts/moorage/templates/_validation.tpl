{{/* What the schema cannot say. Every message names the value. */}}
{{- define "moorage.validate" -}}
{{- $scheduler := .Values.scheduler }}
{{- $own := "default-scheduler" }}
{{- $advice := "Moorage's own pods are placed by default-scheduler, so it cannot be Moorage itself: nothing would ever place the first one. To replace kube-scheduler, see docs/install.md" }}
{{- if has $own $scheduler.schedulerNames }}
{{- fail (printf "scheduler.schedulerNames: %s is refused. %s" $own $advice) }}
{{- end }}
{{- if and $scheduler.config (not $scheduler.config.profiles) }}
{{- fail (printf "scheduler.config.profiles: must be given, since a configuration without profiles is for %s. %s" $own $advice) }}
{{- end }}
{{- range $index, $profile := $scheduler.config.profiles }}
{{- if eq $own (get $profile "schedulerName" | default $own) }}
{{- fail (printf "scheduler.config.profiles[%d].schedulerName: %s (the default of a profile without a name) is refused. %s" $index $own $advice) }}
{{- end }}
{{- end }}
{{- $taken := dict "--scheduler-name" "scheduler.schedulerNames" "--config" "scheduler.config" "--lease-name" "scheduler.leaderElection.leaseName" "--lease-namespace" "the release's namespace" "--leader-elect" "scheduler.leaderElection.enabled" "--no-leader-elect" "scheduler.leaderElection.enabled" "--metrics-listen" "scheduler.listen" }}
{{- range $index, $argument := $scheduler.extraArgs }}
{{- $option := splitList "=" $argument | first }}
{{- with get $taken $option }}
{{- fail (printf "scheduler.extraArgs[%d]: %s is set by %s" $index $option .) }}
{{- end }}
{{- end }}
{{- range $index, $variable := $scheduler.extraEnv }}
{{- $option := printf "--%s" ($variable.name | lower | trimPrefix "moorage_" | replace "_" "-") }}
{{- if and (hasPrefix "MOORAGE_" $variable.name) (get $taken $option) }}
{{- fail (printf "scheduler.extraEnv[%d]: %s is set by %s" $index $variable.name (get $taken $option)) }}
{{- end }}
{{- end }}
{{- if and (gt (int $scheduler.replicas) 1) (not $scheduler.leaderElection.enabled) }}
{{- fail (printf "scheduler.leaderElection.enabled: %d replicas need leader election, else each would place the same pods" (int $scheduler.replicas)) }}
{{- end }}
{{- $features := list }}
{{- range index (.Files.Get "files/permissions.yaml" | fromYaml) "scheduler" }}
{{- $features = append $features .feature }}
{{- end }}
{{- range $index, $feature := .Values.rbac.without }}
{{- if or (eq $feature "") (not (has $feature $features)) }}
{{- fail (printf "rbac.without[%d]: there is no optional feature %q; there are: %s" $index $feature ($features | uniq | compact | join ", ")) }}
{{- end }}
{{- end }}
{{- if not .Values.serviceAccount.create }}
{{- if not .Values.serviceAccount.name }}
{{- fail "serviceAccount.name: must name an account when serviceAccount.create is false" }}
{{- end }}
{{- end }}
{{- $extender := .Values.extender }}
{{- if and $extender.enabled $extender.writeStatus (gt (int $scheduler.replicas) 0) }}
{{- fail (printf "extender.writeStatus: scheduler.replicas is %d, and the scheduler writes the policies' status already" (int $scheduler.replicas)) }}
{{- end }}
{{- if and $extender.enabled $extender.bind.enabled (not (and $extender.tls.secretName $extender.tls.clientCA)) }}
{{- fail "extender.bind.enabled: needs mutual TLS, so extender.tls.secretName and extender.tls.clientCA: whoever reaches the port could bind pods" }}
{{- end }}
{{- if and $extender.tls.clientCA (not $extender.tls.secretName) }}
{{- fail "extender.tls.clientCA: needs extender.tls.secretName" }}
{{- end }}
{{- end }}
