/** The part of the OpenAPI document that the documentation uses. */
export interface Description {
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, DescribedOperation>>
  [other: string]: unknown
}

export interface DescribedOperation {
  operationId: string
  /** Audience, then subject; only one if they are equal. */
  tags: string[]
  parameters?: { name: string; in: string; schema: object; example?: unknown }[]
  requestBody?: { content: Record<string, { example?: unknown }> }
  'x-same-as'?: string
  'x-requests-per-minute'?: number
}
