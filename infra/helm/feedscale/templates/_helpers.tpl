{{/* The name of all objects. A release called feedscale has the names that infra/kubernetes has. */}}
{{- define "feedscale.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The selector is one label and stays as it is: a Deployment's cannot be changed. */}}
{{- define "feedscale.labels" -}}
app.kubernetes.io/name: {{ include "feedscale.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "feedscale.keySecret" -}}
{{- default (printf "%s-key" (include "feedscale.name" .)) .Values.apiKey.existingSecret -}}
{{- end -}}

{{- define "feedscale.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{/* What the pods of run and of consume have in common. */}}
{{- define "feedscale.pod" -}}
automountServiceAccountToken: {{ .token }}
# Otherwise Kubernetes sets FEEDSCALE_PORT for the Service, which is refused as an unknown setting.
enableServiceLinks: false
terminationGracePeriodSeconds: 30
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "feedscale.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "feedscale.secretSettings" -}}
{{- range $name, $ref := .Values.secretSettings }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $ref.name }}
      key: {{ $ref.key }}
{{- end }}
{{- end -}}
