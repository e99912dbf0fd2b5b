/** The address by which callers know the service (`PUBLIC_URL`), with the path at which a proxy has mounted it. */
export type PublicUrl = string

const withoutSlash = (publicUrl: PublicUrl): string => publicUrl.replace(/\/+$/, '')

/** The whole address of a path of the service: `https://shop.example/larder/files/…`. */
export const addressUnder = (publicUrl: PublicUrl, path: string): string =>
  `${withoutSlash(publicUrl)}${path}`

/**
 * The path of an address without its origin, mount included: `/larder/hubs/1/products?page=2`. It is valid for callers who
 * reach the service by another name.
 */
export const pathUnder = (publicUrl: PublicUrl, path: string): string =>
  `${withoutSlash(new URL(publicUrl).pathname)}${path}`
