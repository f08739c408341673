{{/* The file of `orchard serve --config`. */}}
{{- define "orchard.config" -}}
{{- $provider := deepCopy .Values.sandboxes.options -}}
{{- $_ := set $provider "namespace" (include "orchard.sandboxes" .) -}}
{{- /* Replicas of one name own the sandboxes together. */ -}}
{{- $_ := set $provider "driver" (printf "%s-%s" .Release.Namespace (include "orchard.fullname" .) | trunc 48 | trimSuffix "-") -}}
{{- $_ := set $provider "injector" (default (printf "orchard/injector:%s" .Chart.AppVersion) .Values.sandboxes.injector) -}}
{{- $_ := set $provider "seed_secret" (include "orchard.seedSecret" .) -}}
{{- $_ := set $provider "agent_port" (int .Values.sandboxes.agentPort) -}}
{{- /* The chart makes them, so that the service needs no right to. */ -}}
{{- $_ := set $provider "network_policies" false -}}
{{- with .Values.sandboxes.spot -}}
{{- if .enabled -}}
{{- $_ := set $provider "tolerations" (concat (default list $provider.tolerations) .tolerations) -}}
{{- $_ := set $provider "node_selector" (merge (deepCopy .nodeSelector) (default dict $provider.node_selector)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.snapshots.existingClaim -}}
{{- /* They outlive a pod, as the volume does. */ -}}
{{- $here := dict "url" "file:///var/lib/orchard-snapshots" -}}
{{- $_ := set $provider "snapshots" (merge $here (deepCopy (default dict $provider.snapshots)) (dict "keep" true)) -}}
{{- end -}}
{{- $service := merge (deepCopy .Values.config.service) (dict "namespace" (include "orchard.sandboxes" .)) -}}
{{- $observe := deepCopy .Values.config.observe -}}
{{- if .Values.metrics.enabled -}}
{{- $_ := set $observe "listen" (printf "0.0.0.0:%d" (int .Values.metrics.port)) -}}
{{- end -}}
{{- toYaml (dict "service" $service "provider" $provider "team" .Values.config.team "observe" $observe) -}}
{{- end -}}
