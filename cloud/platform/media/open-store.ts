import { folderStore } from './folder-store.ts'
import { s3Store, type S3Options } from './s3-store.ts'
import type { MediaStore } from './store.ts'

export interface StoreCredentials {
  accessKeyId: string | undefined
  secretAccessKey: string | undefined
}

/**
 * The store of `MEDIA_URL`: `file:PATH`, or `s3://BUCKET[/PREFIX]?endpoint=URL&region=REGION`. Default: AWS in
 * us-east-1. Throws an error with a message for the operator.
 */
export function openMediaStore(url: string, credentials: StoreCredentials): MediaStore {
  if (url.startsWith('file:')) return folderStore(url.slice('file:'.length))
  return s3Store(s3OptionsOf('MEDIA_URL', url, credentials))
}

/** The bucket of an s3: address. `setting` names the address in the message of an error. */
export function s3OptionsOf(
  setting: string,
  url: string,
  { accessKeyId, secretAccessKey }: StoreCredentials,
): S3Options {
  if (!accessKeyId || !secretAccessKey)
    throw new Error(`${setting}: s3:// needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`)
  const { hostname: bucket, pathname, searchParams } = new URL(url)
  const region = searchParams.get('region') ?? 'us-east-1'
  const endpoint = searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`
  return {
    endpoint: `${endpoint.replace(/\/+$/, '')}/${bucket}`,
    region,
    prefix: pathname.replaceAll(/^\/+|\/+$/g, ''),
    accessKeyId,
    secretAccessKey,
  }
}
