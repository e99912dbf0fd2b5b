import { KIB, MIB, totalBytesOf, type FileField, type Form } from '../../../protocol/contract/form.ts'
import { mediaTypes } from '../media/media-type.ts'
import type { JsonSchema, SchemaWriter } from './json-schema.ts'

/** A multipart form in the OpenAPI document: its files are binary strings, its JSON fields objects. */
export function formBody(form: Form, example: unknown, writer: SchemaWriter) {
  const fields = writer.write(form.fields)
  const files = Object.entries(form.files)
  const required = [
    ...((fields['required'] as string[] | undefined) ?? []),
    ...files.filter(([, field]) => field.required).map(([name]) => name),
  ]
  const schema: JsonSchema = {
    ...fields,
    properties: {
      ...(fields['properties'] as JsonSchema),
      ...Object.fromEntries(files.map(([name, field]) => [name, fileSchema(field)])),
    },
    ...(required.length > 0 && { required }),
    description: `All files together: at most ${size(totalBytesOf(form))}.`,
  }
  const encoding = Object.fromEntries(
    files.map(([name, field]) => [name, { contentType: typesOf(field).join(', ') }]),
  )
  return {
    required: required.length > 0,
    content: { 'multipart/form-data': { schema, encoding, ...(example !== undefined && { example }) } },
  }
}

function fileSchema(field: FileField): JsonSchema {
  const { maxFiles = 1 } = field
  const limits = [
    field.imageBytes !== undefined && `images up to ${size(field.imageBytes)}`,
    field.videoBytes !== undefined && `videos up to ${size(field.videoBytes)}`,
  ]
  const file = { type: 'string', format: 'binary' }
  const description = `By content, not by name: ${limits.filter(Boolean).join(', ')}.`
  return maxFiles === 1
    ? { ...file, description }
    : { type: 'array', items: file, maxItems: maxFiles, description }
}

const typesOf = (field: FileField): string[] =>
  mediaTypes
    .filter(({ kind }) => (kind === 'image' ? field.imageBytes : field.videoBytes) !== undefined)
    .map(({ mimeType }) => mimeType)

const size = (bytes: number): string => (bytes >= MIB ? `${bytes / MIB} MiB` : `${bytes / KIB} KiB`)
