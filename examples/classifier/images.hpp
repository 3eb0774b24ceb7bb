// Grey images of simple shapes, drawn at random, and PGM files.
#ifndef IMAGES_HPP
#define IMAGES_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace images
{

constexpr int side = 36; // pixels
constexpr std::size_t pixels = std::size_t{side} * side;
constexpr std::array<const char *, 5> kinds = {"disc", "ring", "square", "triangle", "cross"};

using image = std::array<float, pixels>; // 0: black, 1: white

// Whether a point belongs to a shape of radius 1 around the origin.
inline bool is_inside(std::size_t kind, float x, float y)
{
    const float distance = std::sqrt(x * x + y * y), far = std::max(std::fabs(x), std::fabs(y));
    switch (kind) {
    case 0: return distance < 0.9f;
    case 1: return distance < 1 && distance > 0.6f;
    case 2: return far < 0.8f;
    case 3: return y > -0.5f && y < 1 - 1.732f * std::fabs(x);
    default: return far < 1 && std::min(std::fabs(x), std::fabs(y)) < 0.3f;
    }
}

// A shape of random size, place, angle, brightness and contrast, with noise.
inline image draw(std::size_t kind, std::mt19937 &random)
{
    const auto between = [&](float low, float high) {
        return low + (high - low) * static_cast<float>(random()) * 0x1p-32f;
    };
    const float radius = between(8, 13), angle = between(0, 6.2832f);
    const float x0 = between(radius, side - radius), y0 = between(radius, side - radius);
    const float ground = between(0.1f, 0.5f), contrast = between(0.3f, 0.5f),
                noise = between(0, 0.1f);
    const float c = std::cos(angle) / radius, s = std::sin(angle) / radius;
    image made;
    for (std::size_t i = 0; i < pixels; i++) {
        const float x = static_cast<float>(i % side) + 0.5f - x0,
                    y = static_cast<float>(i / side) + 0.5f - y0;
        const float shape = is_inside(kind, c * x - s * y, s * x + c * y) ? contrast : 0;
        made[i] = ground + shape + between(-noise, noise);
    }
    return made;
}

inline void write_pgm(const std::string &path, const image &from)
{
    std::ofstream file(path, std::ios::binary);
    file << "P5\n" << side << ' ' << side << "\n255\n";
    for (const float value : from)
        file.put(static_cast<char>(std::lround(255 * std::clamp(value, 0.0f, 1.0f))));
    if (!file.flush())
        throw std::runtime_error(path + ": cannot be written");
}

// A grey image of any size, scaled to ours: each pixel is the nearest one of the file.
inline image read_pgm(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error(path + ": cannot be opened");
    std::string magic;
    std::size_t width = 0, height = 0, most = 0;
    file >> magic >> width >> height >> most;
    file.get();
    if (!file || magic != "P5" || most != 255 || !width || !height || width > 4096 || height > 4096)
        throw std::runtime_error(
            path + ": expected a binary PGM file (P5) with 255 levels, without comments");
    std::vector<char> bytes(width * height);
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
        throw std::runtime_error(path + ": the file is truncated");
    image made;
    for (std::size_t i = 0; i < pixels; i++) {
        const std::size_t x = i % side * width / side, y = i / side * height / side;
        made[i] = static_cast<float>(static_cast<unsigned char>(bytes[y * width + x])) / 255;
    }
    return made;
}

} // namespace images

#endif
