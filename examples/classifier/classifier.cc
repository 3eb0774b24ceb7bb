// An image classifier: trains a small network on shapes that it draws, in seconds, then says how many new drawings it
// recognises, and what is on the images that it is given.
//
//     classifier [--device NAME] [--steps N] [--samples FOLDER] [IMAGE.pgm ...]
//
// --samples writes one drawing of each kind into a folder, to try it with.
#include "images.hpp"
#include "network.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

constexpr std::size_t batch = 128;

struct options {
    std::string device = "best", samples;
    int steps = 300;
    std::vector<std::string> files;
};

options read_options(int count, char **words)
{
    options made;
    for (int i = 1; i < count; i++) {
        const std::string word = words[i];
        if (word.rfind("--", 0) != 0) {
            made.files.push_back(word);
            continue;
        }
        const char *value = i + 1 < count ? words[++i] : nullptr;
        if (value && word == "--device")
            made.device = value;
        else if (value && word == "--samples")
            made.samples = value;
        else if (value && word == "--steps")
            made.steps = std::atoi(value);
        else
            throw std::invalid_argument(
                "usage: classifier [--device NAME] [--steps N] [--samples FOLDER] [IMAGE.pgm ...]");
    }
    return made;
}

// As many drawings as a batch has, and the kind of each.
void draw_batch(std::vector<images::image> &drawn, std::vector<std::size_t> &truth,
                std::mt19937 &random)
{
    for (std::size_t i = 0; i < batch; i++) {
        truth[i] = random() % images::kinds.size();
        drawn[i] = images::draw(truth[i], random);
    }
}

std::size_t most_likely(const std::vector<float> &chances, std::size_t image)
{
    const auto first = chances.begin() + static_cast<std::ptrdiff_t>(image * images::kinds.size());
    return static_cast<std::size_t>(std::max_element(first, first + network::kinds) - first);
}

void train(network &net, int steps, std::mt19937 &random)
{
    std::vector<images::image> drawn(batch);
    std::vector<std::size_t> truth(batch);
    for (int step = 0; step < steps; step++) {
        draw_batch(drawn, truth, random);
        net.train(drawn, truth);
    }
}

// The part of new drawings that the network recognises.
double measure(network &net, int batches, std::mt19937 &random)
{
    std::vector<images::image> drawn(batch);
    std::vector<std::size_t> truth(batch);
    std::size_t right = 0;
    for (int round = 0; round < batches; round++) {
        draw_batch(drawn, truth, random);
        const std::vector<float> chances = net.classify(drawn);
        for (std::size_t i = 0; i < batch; i++)
            right += most_likely(chances, i) == truth[i];
    }
    return static_cast<double>(right) /
           static_cast<double>(static_cast<std::size_t>(batches) * batch);
}

void classify_image(network &net, const std::string &path, const images::image &from)
{
    std::vector<images::image> one(batch);
    one[0] = from;
    const std::vector<float> chances = net.classify(one);
    const std::size_t kind = most_likely(chances, 0);
    std::printf("%s: %s (%.0f%%)\n", path.c_str(), images::kinds[kind],
                100 * static_cast<double>(chances[kind]));
}

void write_samples(const std::string &folder, std::mt19937 &random)
{
    for (std::size_t kind = 0; kind < images::kinds.size(); kind++)
        images::write_pgm(folder + "/" + images::kinds[kind] + ".pgm", images::draw(kind, random));
}

void run(const options &chosen)
{
    std::mt19937 random(1);
    if (!chosen.samples.empty())
        write_samples(chosen.samples, random);
    std::vector<images::image> read; // before the training: a missing file is reported at once
    for (const std::string &path : chosen.files)
        read.push_back(images::read_pgm(path));
    tn_device *device = tenon::device(chosen.device.c_str());
    network net(device, batch, random);
    const auto begin = std::chrono::steady_clock::now();
    train(net, chosen.steps, random);
    tenon::call(tn_device_synchronize, device);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("trained on %s (%s) in %.1f s\n", tn_device_id(device), tn_device_name(device),
                seconds.count());
    std::printf("recognised %.1f%% of new drawings\n", 100 * measure(net, 4, random));
    for (std::size_t i = 0; i < read.size(); i++)
        classify_image(net, chosen.files[i], read[i]);
}

} // namespace

int main(int count, char **words)
{
    try {
        run(read_options(count, words));
    } catch (const std::exception &error) { // a tenon::error is one, too
        std::fprintf(stderr, "classifier: %s\n", error.what());
        return 1;
    }
    return 0;
}
