/** The public address of the service (`PUBLIC_URL`), including the path at which a proxy mounts it. */
export type PublicUrl = string

const withoutSlash = (publicUrl: PublicUrl): string => publicUrl.replace(/\/+$/, '')

/** The full address of a path of the service: `https://shop.example/larder/files/…`. */
export const addressUnder = (publicUrl: PublicUrl, path: string): string =>
  `${withoutSlash(publicUrl)}${path}`

/**
 * The path of an address without its origin, mount included: `/larder/hubs/1/products?page=2`. It is also valid for
 * callers that use another host name.
 */
export const pathUnder = (publicUrl: PublicUrl, path: string): string =>
  `${withoutSlash(new URL(publicUrl).pathname)}${path}`
