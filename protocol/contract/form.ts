import type { z } from 'zod'

export const KIB = 1024
export const MIB = 1024 * KIB

/**
 * The multipart form of a route, as data. Text fields are parsed like query parameters; a field with an object
 * schema is JSON (O §4.5 `formData`, §4.7 `dealData`). Files are streamed to the media store and checked by their content.
 */
export interface Form {
  fields: z.ZodObject
  files: Readonly<Record<string, FileField>>
  /** Maximum size of all files together in bytes; by default the sum of the fields' limits. */
  totalBytes?: number
  /** Where the media store keeps the files: `<folder>/<uuid>.<ext>`. */
  folder: MediaFolder
  /**
   * The object that the form makes has its id before its files are stored, which stand in a folder of that name
   * (`maintenance/<report>/<uuid>.<ext>`). Ids are counted by folder.
   */
  numbered?: true
}

export type MediaFolder = 'maintenance' | 'banners' | 'deals' | 'profiles' | 'products'

/** A field of files. A kind without a limit is refused. */
export interface FileField {
  required?: true
  /** Default 1. */
  maxFiles?: number
  /** Largest image in bytes: png, jpeg, webp, gif. */
  imageBytes?: number
  /** Largest video in bytes: mp4, mov, webm. */
  videoBytes?: number
}

/** The most text that a form may carry, as much as a JSON body. */
export const FORM_TEXT_BYTES = MIB

/** An image of a banner, a deal or a profile. */
export const picture = { required: true, imageBytes: 5 * MIB } as const satisfies FileField

/** The most bytes that the files of a form may have together. */
export const totalBytesOf = (form: Form): number =>
  form.totalBytes ??
  Object.values(form.files).reduce(
    (sum, { maxFiles = 1, imageBytes = 0, videoBytes = 0 }) =>
      sum + maxFiles * Math.max(imageBytes, videoBytes),
    0,
  )

/** Whether a text field is JSON. */
export function isJsonField(field: z.core.$ZodType): boolean {
  const { def } = field as z.ZodType
  return 'innerType' in def ? isJsonField(def.innerType as z.core.$ZodType) : def.type === 'object'
}

/** A file of a form that has been stored. */
export interface FormFile {
  fieldname: string
  /** As its sender called it: text, never a path. */
  original_name: string
  /** The media type that the content shows. */
  mime_type: string
  /** Bytes. */
  size: number
  /** Its key in the media store. */
  key: string
}
